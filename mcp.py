
import json, subprocess, sys
server = subprocess.Popen([sys.executable, "-m", "holdfast", "mcp"], stdin=-1, stdout=-1)
def ask(number, method, params):
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    server.stdin.write(line.encode() + b"\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())
about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
ask(0, "initialize", about)
for number, verb in enumerate(("resume", "approve", "answer"), 1):
    call = {"name": "say", "arguments": {"task": "evil", "verb": verb, "message": "go on"}}
    said = ask(number, "tools/call", call)["result"]
    assert said.get("isError") and "an agent may not" in said["content"][0]["text"], said
server.stdin.close()
server.wait()
