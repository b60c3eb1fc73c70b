# A small MCP server with odd habits. `$NOTES` is a file to which it writes what it receives.

printf 'started\n' >>"$NOTES"
[ -e "$NOTES.hang" ] && exec sleep 1000

answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
text() { answer '{"content":[{"type":"text","text":"'"$1"'"}]}'; }
tool() { printf '{"name":"%s","inputSchema":{"type":"object","properties":{"a":{"type":"integer"}}}%s}' "$1" "$2"; }
many() { head -c "$1" /dev/zero | tr '\0' "$2"; }
# Asks the client for something, and notes what it answers.
ask() {
    printf '{"jsonrpc":"2.0","id":"%s","method":"%s","params":%s}\n' "$1" "$1" "$2"
    IFS= read -r reply && printf '%s\n' "$reply" >>"$NOTES"
}

list() {
    case $line in
    *'"cursor":"two"'*)
        answer '{"tools":['"$(tool hang),$(tool cut),$(tool mess),$(tool half),$(tool fail),$(tool long),$(tool loud),$(tool busy),$(tool ask),$(tool change),$(tool child),$(tool give)"']}' ;;
    *)
        wrong='{"name":"wrong","inputSchema":{"type":"array"}}'
        reads=',"annotations":{"readOnlyHint":true}'
        again=',"annotations":{"idempotentHint":true}'
        answer '{"tools":['"$(tool who "$reads"),$(tool echo "$again"),$wrong,$(tool 'two words'),$(tool die)"'],"nextCursor":"two"}' ;;
    esac
}

call() {
    case $line in
    *'"name":"who"'*) text "$$" ;;
    *'"name":"echo"'*)
        arguments=${line#*\"arguments\":}
        answer '{"structuredContent":'"${arguments%\}\}}"'}' ;;
    *'"name":"two words"'*) text 'it has a blank' ;;
    *'"name":"die"'*)
        echo 'out of paper' >&2
        exit 7 ;;
    *'"name":"cut"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text"\n' "$id" ;;
    *'"name":"mess"'*)
        printf '{"jsonrpc":"2.0","res\n{"level":30,"id":%s,"msg":"log"}\n{}\n' "$id"
        text 'it was logged' ;;
    *'"name":"half"'*) text 'half \ud83d' ;;
    *'"name":"hang"'*) ;;
    *'"name":"fail"'*) answer '{"content":[{"type":"text","text":"no such file"}],"isError":true}' ;;
    *'"name":"long"'*) many 17000000 a ;;
    *'"name":"loud"'*)
        many 300000 e >&2
        text 'it was loud' ;;
    *'"name":"busy"'*)
        count=0
        while [ "$count" -lt 1000 ]; do
            printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%s}}\n' "$count"
            count=$((count + 1))
        done
        printf 'this is no message\n{"jsonrpc":"2.0","id":999,"result":{}}\n'
        text 'it was busy' ;;
    *'"name":"ask"'*)
        ask sampling/createMessage '{"messages":[],"maxTokens":1}'
        ask roots/list '{}'
        ask elicitation/create '{"message":"Who are you?","requestedSchema":{"type":"object","properties":{}}}'
        text 'it has asked' ;;
    *'"name":"change"'*)
        printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
        # The client may look at it a moment later.
        sleep 0.05
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"Unknown tool: change"}}\n' "$id" ;;
    *'"name":"give"'*) text "$(cat "$NOTES.text")" ;;
    *'"name":"child"'*)
        sleep 1000 &
        text "$!" ;;
    esac
}

while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $line in
    *'"method":"initialize"'*)
        answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}' ;;
    *'"method":"tools/list"'*) list ;;
    *'"method":"tools/call"'*) call ;;
    *'"method":"notifications/cancelled"'*) printf '%s\n' "$line" >>"$NOTES" ;;
    esac
done
echo 'closed' >>"$NOTES"
