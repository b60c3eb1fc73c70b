//! Requests, as the model server receives them.

use plaincall_gateway::ModelSettings;
use plaincall_gateway::translation::ClientApi;
use serde_json::{Value, json};

use crate::messages::model::{ask, fed, request, round, upstream};
use crate::messages::strict::read_stream;

/// The messages for the model server, without the prompt of the tools.
fn messages(fields: &Value) -> Vec<(String, Value)> {
    let body = upstream(&request(fields));
    let messages = body["messages"].as_array().unwrap().iter();
    let messages = messages.filter_map(|message| {
        let mut content = message["content"].clone();
        if let Some(text) = content.as_str() {
            let own = text.split("# Calling tools").next().unwrap();
            content = json!(own.trim_end());
        }
        let is_prompt = message["role"] == "system" && content == "";
        (!is_prompt).then(|| (message["role"].as_str().unwrap().to_owned(), content))
    });
    messages.collect()
}

fn of_user(content: &Value) -> Value {
    let messages = messages(&json!({"messages": [{"role": "user", "content": content}]}));
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages[0].1.clone()
}

#[test]
fn parameters() {
    let body = upstream(&request(&json!({
        "temperature": 0.5, "top_p": 0.9, "top_k": 40, "stop_sequences": ["END"],
        "metadata": {"user_id": "u"}, "context_management": {"edits": []}, "betas": ["x"], "container": null,
        "output_config": {"effort": "high"}, "service_tier": "auto", "new_field": {"a": [1]},
    })));
    for (name, value) in [
        ("model", json!("m")),
        ("max_tokens", json!(100)),
        ("temperature", json!(0.5)),
        ("top_p", json!(0.9)),
        ("top_k", json!(40)),
        ("stop", json!(["END"])),
        ("stream", json!(true)),
        ("stream_options", json!({"include_usage": true})),
    ] {
        assert_eq!(body[name], value, "{name}");
    }
    let names: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(
        names.len(),
        9,
        "no other fields but the messages: {names:?}"
    );
    let plain = upstream(
        &json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}),
    );
    assert_eq!(
        plain,
        json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]})
    );
}

#[test]
fn system_prompts() {
    let system = |system: Value| {
        let found = messages(&json!({"system": system}));
        found
            .iter()
            .find(|(role, _)| role == "system")
            .map(|(_, text)| text.as_str().unwrap().to_owned())
    };
    let billing = "x-anthropic-billing-header: cc_version=2; cch=a1b2;";
    let text =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    assert_eq!(system(json!("Be kind.")).unwrap(), "Be kind.");
    assert_eq!(
        system(json!([text("Be kind."), text("Be short.")])).unwrap(),
        "Be kind.\n\nBe short."
    );
    assert_eq!(
        system(json!([text(billing), text("Be kind.")])).unwrap(),
        "Be kind."
    );
    assert_eq!(
        system(json!(format!("{billing}\nBe kind."))).unwrap(),
        "Be kind."
    );
    for none in [
        json!(null),
        json!(""),
        json!([]),
        json!([text(billing)]),
        json!(billing),
    ] {
        assert_eq!(system(none), None);
    }
    // Only the first text changes with each request.
    let quoted = format!("Be kind.\n\n{billing}");
    assert_eq!(
        system(json!([text("Be kind."), text(billing)])).unwrap(),
        quoted
    );
}

#[test]
fn contents_of_users() {
    assert_eq!(of_user(&json!("Hi.")), "Hi.");
    assert_eq!(
        of_user(
            &json!([{"type": "text", "text": "Hi.", "cache_control": {}}, {"type": "text", "text": "So?"}])
        ),
        "Hi.\n\nSo?"
    );
    let image = |source: Value| json!({"type": "image", "source": source});
    let picture = image(json!({"type": "base64", "media_type": "image/png", "data": "iVBO"}));
    let linked = image(json!({"type": "url", "url": "https://a.example/b.png"}));
    assert_eq!(
        of_user(&json!([{"type": "text", "text": "Look:"}, picture, linked])),
        json!([
            {"type": "text", "text": "Look:"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
            {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
        ])
    );
    let document = |source: Value| json!({"type": "document", "title": "A", "source": source});
    assert_eq!(
        of_user(&json!([document(
            json!({"type": "text", "media_type": "text/plain", "data": "One."})
        )])),
        "A\n\nOne."
    );
    assert_eq!(
        of_user(&json!([document(
            json!({"type": "base64", "media_type": "application/pdf", "data": "JVBE"})
        )])),
        json!([{"type": "file", "file": {"filename": "A", "file_data": "data:application/pdf;base64,JVBE"}}])
    );
    let found = json!({"type": "search_result", "title": "A", "source": "https://a.example", "content": [{"type": "text", "text": "One."}]});
    assert_eq!(of_user(&json!([found])), "A\nhttps://a.example\nOne.");
}

fn call(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn result(id: &str, content: Value) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

#[test]
fn results_are_in_the_order_of_the_calls() {
    let calls = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": ""}, {"type": "text", "text": "I add."},
        call("a", "add", json!({"a": 1})), call("b", "now", json!({})), call("c", "add", json!({"a": 2})),
    ]);
    let mut failed = result("b", json!("no clock"));
    failed["is_error"] = json!(true);
    let mixed = [
        json!([{"type": "text", "text": "1"}, {"type": "text", "text": "2"}]),
        json!([{"type": "text", "text": "3"}]),
    ];
    let [first, third] = mixed;
    let results = json!([result("c", third), failed, result("a", first), {"type": "text", "text": "And now?"}]);
    let found = messages(&json!({"messages": [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]}));
    let roles: Vec<&str> = found.iter().map(|(role, _)| &**role).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(
        found[1].1.as_str().unwrap(),
        "I add.\n!!!GADGET_START:add\n!!!ARG:a\n1\n!!!GADGET_END\n!!!GADGET_START:now\n!!!GADGET_END\n!!!GADGET_START:add\n!!!ARG:a\n2\n!!!GADGET_END"
    );
    assert_eq!(
        found[2].1.as_str().unwrap(),
        "Result 1 of 3: tool add\nOutput:\n```\n1\n2\n```\nResult 2 of 3: tool now, status error\nOutput: no clock\nResult 3 of 3: tool add\nOutput: 3\n\nThe user writes:\n\nAnd now?"
    );
}

/// Results may be in several messages, and after an instruction.
#[test]
fn results_in_several_messages() {
    let found = messages(&json!({"system": "Be kind.", "messages": [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": [call("a", "now", json!({})), call("b", "now", json!({}))]},
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [result("b", json!("2"))]},
        {"role": "user", "content": [result("a", json!(null))]},
        {"role": "system", "content": [{"type": "text", "text": "Be quick."}]},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]}));
    let roles: Vec<&str> = found.iter().map(|(role, _)| &**role).collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "user", "assistant", "user"]
    );
    assert_eq!(
        found[3].1,
        "Result 1 of 2: tool now\nNo output.\nResult 2 of 2: tool now\nOutput: 2\n\nThe system writes:\n\nBe brief.\n\nBe quick."
    );
}

#[test]
fn images_in_results_follow_the_text() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}});
    let found = messages(&json!({"messages": [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": [call("a", "now", json!({}))]},
        {"role": "user", "content": [result("a", json!([image, {"type": "text", "text": "A clock."}]))]},
    ]}));
    let parts = found[2].1.as_array().unwrap();
    assert_eq!(
        parts[0]["text"],
        "Result 1 of 1: tool now\nOutput: A clock.\n"
    );
    assert_eq!(parts[1]["image_url"]["url"], "data:image/png;base64,iVBO");
}

#[test]
fn deferred_tools() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let find = json!({"name": "find_tool", "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}}});
    let weather = json!({"name": "weather", "description": "Reports the weather.", "input_schema": schema, "defer_loading": true});
    let unused =
        json!({"name": "placeholder", "input_schema": {"type": "object"}, "defer_loading": true});
    let reference = |name: &str| json!([{"type": "tool_reference", "tool_name": name}]);
    let body = |name: &str| {
        request(&json!({"tools": [find, weather, unused], "messages": [
            {"role": "user", "content": "How is the weather?"},
            {"role": "assistant", "content": [call("a", "find_tool", json!({"query": "weather"}))]},
            {"role": "user", "content": [result("a", reference(name))]},
        ]}))
    };
    let sent = upstream(&body("weather"));
    let prompt = sent["messages"][0]["content"].as_str().unwrap();
    assert!(
        prompt.contains("## find_tool\n")
            && !prompt.contains("weather")
            && !prompt.contains("placeholder"),
        "{prompt}"
    );
    assert_eq!(
        sent["messages"][3]["content"],
        "Result 1 of 1: tool find_tool\nOutput:\n```\n## weather\n// Reports the weather.\ncity?: string\n\n```\n"
    );
    let unknown = upstream(&body("other"));
    assert_eq!(
        unknown["messages"][3]["content"],
        "Result 1 of 1: tool find_tool\nOutput:\n```\nThere is no tool named other.\n\n```\n"
    );
    // The model can call it now.
    let mut asked = ask(
        ClientApi::Messages.path(),
        &body("weather"),
        &ModelSettings::default(),
    )
    .unwrap();
    let round = round(
        "!!!GADGET_START:weather\n!!!ARG:city\nOslo\n!!!GADGET_END\n",
        "stop",
    );
    let (bytes, _) = fed(&mut asked, &[round.0], true, 100);
    assert_eq!(
        read_stream(&bytes).calls(),
        [("weather".to_owned(), r#"{"city":"Oslo"}"#.to_owned())]
    );
}

/// Tools that Anthropic runs or defines have no schema.
#[test]
fn hosted_tools_are_dropped() {
    let own = json!({"type": "custom", "name": "now", "input_schema": {"type": "object"}, "defer_loading": true});
    let tools = json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}, own]);
    let body = request(&json!({"tools": tools}));
    let asked = ask(ClientApi::Messages.path(), &body, &ModelSettings::default()).unwrap();
    let [changed] = asked.changed_tools() else {
        panic!("{:?}", asked.changed_tools());
    };
    assert!(changed.is_dropped);
    assert!(changed.reason.at.starts_with("/tools/0"));
    let schema = json!({"type": "object", "properties": {"function": {"type": "any"}}});
    let odd = json!({"name": "odd", "input_schema": schema});
    let body = request(&json!({"tools": [own, odd]}));
    let asked = ask(ClientApi::Messages.path(), &body, &ModelSettings::default()).unwrap();
    let at = &asked.changed_tools()[0].reason.at;
    assert_eq!(at, "/tools/1/input_schema/properties/function/type");
    assert_eq!(body.pointer(at), Some(&json!("any")));
    // Without the server that searches, deferred tools are listed.
    let tools = json!([{"type": "tool_search_tool_regex_20251119", "name": "tool_search"}, own]);
    let sent = upstream(&request(&json!({"tools": tools})));
    assert!(
        sent["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains("## now\n")
    );
}

#[test]
fn choices() {
    let last = |choice: Value| {
        let sent = upstream(&request(&json!({"tool_choice": choice})));
        let messages = sent["messages"].as_array().unwrap();
        messages.last().unwrap()["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(last(json!({"type": "auto"})), "Do it.");
    assert_eq!(
        last(json!({"type": "any"})),
        "Do it.\n\n(Call a tool in this reply.)"
    );
    assert_eq!(
        last(json!({"type": "tool", "name": "now"})),
        "Do it.\n\n(In this reply, call the tool now.)"
    );
    assert_eq!(
        last(json!({"type": "none"})),
        "Do it.\n\n(Call no tool in this reply. Answer in text.)"
    );
}

#[test]
fn formats() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let format = json!({"type": "json_schema", "schema": schema});
    for fields in [
        json!({"output_config": {"format": format}}),
        json!({"output_format": format}),
    ] {
        let mut body = request(&fields);
        body["tools"] = json!(null);
        let form = &upstream(&body)["response_format"];
        assert_eq!(
            *form,
            json!({"type": "json_schema", "json_schema": {"name": "output", "schema": schema}})
        );
    }
}

#[test]
fn invalid_requests() {
    let error = |fields: &Value| {
        let error = ask(
            ClientApi::Messages.path(),
            &request(fields),
            &ModelSettings::default(),
        )
        .unwrap_err();
        assert_eq!(error.status, 400);
        error.message().to_owned()
    };
    let messages = |message: Value| json!({"messages": [message]});
    assert_eq!(
        error(&messages(json!({"role": "tool", "content": "x"}))),
        "messages[0].role: unknown role; it must be `user`, `assistant` or `system`"
    );
    assert_eq!(
        error(&messages(
            json!({"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]})
        )),
        "messages[0].content[0]: blocks of type `container_upload` are not supported; remove it"
    );
    let file = json!({"type": "document", "source": {"type": "file", "file_id": "f"}});
    assert_eq!(
        error(&messages(
            json!({"role": "user", "content": [result("a", json!([file]))]})
        )),
        "messages[0].content[0]: content[0]: `document` with a source of type `file` is not supported; send its data"
    );
    assert_eq!(
        error(&json!({"tool_choice": {"type": "tool"}})),
        "invalid `tool_choice`; its `type` must be `auto`, `any`, `none`, or `tool` with a `name`"
    );
    assert_eq!(
        error(&json!({"messages": {}})),
        "the request body cannot be parsed: messages: expected a list, found an object (line 1, column 684)"
    );
}

/// From one request to the next, all bytes before the last turn are the same.
#[test]
fn the_prompt_only_grows() {
    let turns = [
        json!({"role": "user", "content": [{"type": "text", "text": "Do it.", "cache_control": {"type": "ephemeral"}}]}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "I look."}, call("a", "now", json!({})), call("b", "add", json!({"a": 1}))]}),
        json!({"role": "user", "content": [result("b", json!("1")), result("a", json!("12:00"))]}),
        json!({"role": "assistant", "content": "Done."}),
        json!({"role": "user", "content": "Again."}),
    ];
    let sent = |count: usize| {
        let system = json!([
            {"type": "text", "text": format!("x-anthropic-billing-header: cch={count};")},
            {"type": "text", "text": "Be kind."},
        ]);
        let body = request(&json!({"system": system, "messages": turns[..count]}));
        upstream(&body)["messages"].as_array().unwrap().clone()
    };
    let (first, second, third) = (sent(1), sent(3), sent(5));
    assert_eq!(second[..first.len()], first);
    assert_eq!(third[..second.len()], second);
}
