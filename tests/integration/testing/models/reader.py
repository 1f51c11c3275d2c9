"""Assembles answers as a client does."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.testing.models.conftest import Got, Said


def said(api: str, got: Got) -> Said:
    assert got.status == 200, got.data
    if got.headers["content-type"].startswith("text/event-stream"):
        return _STREAMS[api](got)
    return _WHOLES[api](got.json)


def _anthropic(message: dict[str, Any]) -> Said:
    usage = message["usage"]
    result = Said(stop=message["stop_reason"])
    result.usage = (usage["input_tokens"], usage["output_tokens"], usage["cache_read_input_tokens"])
    for block in message["content"]:
        if block["type"] == "text":
            result.text += block["text"]
        else:
            result.calls.append((block["name"], block["input"]))
            result.ids.append(block["id"])
    return result


def _anthropic_stream(got: Got) -> Said:
    events = got.events
    assert events[0]["type"] == "message_start"
    assert events[-1]["type"] == "message_stop"
    message = events[0]["message"]
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(message["content"])
                message["content"].append(event["content_block"] | {"json": ""})
            case "content_block_delta":
                block, delta = message["content"][event["index"]], event["delta"]
                block["text"] = block.get("text", "") + delta.get("text", "")
                block["json"] += delta.get("partial_json", "")
            case "content_block_stop":
                block = message["content"][event["index"]]
                if block["type"] == "tool_use":
                    block["input"] = json.loads(block["json"])
            case "message_delta":
                message["stop_reason"] = event["delta"]["stop_reason"]
                message["usage"] |= event["usage"]
            case _:
                pass
    names = [line[7:] for line in got.data.decode().split("\n") if line.startswith("event: ")]
    assert names == [event["type"] for event in events]
    return _anthropic(message)


def _responses(response: dict[str, Any]) -> Said:
    usage = response["usage"]
    result = Said(stop=response["status"])
    result.usage = (
        usage["input_tokens"],
        usage["output_tokens"],
        usage["input_tokens_details"]["cached_tokens"],
    )
    for item in response["output"]:
        if item["type"] == "message":
            result.text += "".join(part["text"] for part in item["content"])
        elif item["type"] == "custom_tool_call":
            result.calls.append((item["name"], item["input"]))
        else:
            result.calls.append((item["name"], json.loads(item["arguments"])))
            result.ids.append(item["call_id"])
    return result


def _responses_stream(got: Got) -> Said:
    events = got.events
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    final = events[-1]["response"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == final["output"]
    result = _responses(final)
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == result.text
    return result


def _chat(completion: dict[str, Any]) -> Said:
    [choice] = completion["choices"]
    message = choice["message"]
    result = Said(text=message["content"] or "", stop=choice["finish_reason"])
    result.usage = _chat_usage(completion["usage"])
    for call in message.get("tool_calls", []):
        result.calls.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
        result.ids.append(call["id"])
    return result


def _chat_usage(usage: dict[str, Any]) -> tuple[int, int, int]:
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return usage["prompt_tokens"], usage["completion_tokens"], cached


def _chat_stream(got: Got) -> Said:
    assert got.data.endswith(b"data: [DONE]\n\n")
    calls: list[dict[str, Any]] = []
    result = Said()
    for event in got.events:
        if not event["choices"]:
            result.usage = _chat_usage(event["usage"])
            continue
        [choice] = event["choices"]
        result.text += choice["delta"].get("content", "")
        result.stop = choice["finish_reason"] or ""
        for part in choice["delta"].get("tool_calls", []):
            if part["index"] == len(calls):
                calls.append({"id": part["id"], "name": part["function"]["name"], "arguments": ""})
            calls[part["index"]]["arguments"] += part["function"]["arguments"]
    result.calls = [(call["name"], json.loads(call["arguments"])) for call in calls]
    result.ids = [call["id"] for call in calls]
    return result


def _gemini(*chunks: dict[str, Any]) -> Said:
    result = Said()
    for chunk in chunks:
        [candidate] = chunk["candidates"]
        result.stop = candidate.get("finishReason", "")
        usage = chunk["usageMetadata"]
        cached = usage.get("cachedContentTokenCount", 0)
        result.usage = (usage["promptTokenCount"], usage["candidatesTokenCount"], cached)
        for part in candidate["content"]["parts"]:
            result.text += part.get("text", "")
            if call := part.get("functionCall"):
                result.calls.append((call["name"], call["args"]))
                result.ids.append(call["id"])
    return result


_WHOLES = {"anthropic": _anthropic, "responses": _responses, "chat": _chat, "gemini": _gemini}
_STREAMS = {
    "anthropic": _anthropic_stream,
    "responses": _responses_stream,
    "chat": _chat_stream,
    "gemini": lambda got: _gemini(*got.events),
}
