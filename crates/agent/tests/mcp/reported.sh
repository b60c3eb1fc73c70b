# A server that writes `$START` first, and `$DURING` before the result of each call.

printf '%s' "$START"
while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{}}}}]}' ;;
    *'"tools/call"'*)
        result='{"content":[{"type":"text","text":"fine"}]}'
        printf '%s' "$DURING" ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
