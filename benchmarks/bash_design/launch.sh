#!/usr/bin/env bash
# The bash design, as its documents give it: launch NAME PROJECT COMMAND. Prints the task directory.
# tmux is called with -S and -f so that nobody's own server or configuration takes part. Differences from the
# documents: the agent is COMMAND, and the notifications (a program of its own) are left out.
TASK_NAME=$1 PROJECT=$2 AGENT=$3
tmux() { command tmux -S "$BENCH_TMUX" -f /dev/null "$@"; }

# Step 1: secure temp directory
TMPDIR=$(mktemp -d -p "$BENCH_TASKS") && chmod 700 "$TMPDIR"

# Step 2: prompt file
echo "do it" > "$TMPDIR/prompt"

# Step 3: initial manifest
jq -n \
  --arg task_name "$TASK_NAME" \
  --arg model "none" \
  --arg project_dir "$PROJECT" \
  --arg session_name "claude-$TASK_NAME" \
  --arg pid "0" \
  --arg tmpdir "$TMPDIR" \
  --arg started_at "$(date -u +"%Y-%m-%dT%H:%M:%SZ")" \
  --arg status "running" \
  '{task_name: $task_name, model: $model, project_dir: $project_dir, session_name: $session_name, pid: ($pid | tonumber), tmpdir: $tmpdir, started_at: $started_at, status: $status}' \
  > "$TMPDIR/manifest.json.tmp" && mv "$TMPDIR/manifest.json.tmp" "$TMPDIR/manifest.json"

# Step 4: tmux session
tmux new-session -d -s "claude-$TASK_NAME" -e "TASK_TMPDIR=$TMPDIR"

# Step 5: output capture with ANSI stripping, before send-keys
tmux pipe-pane -t "claude-$TASK_NAME" -O \
  "perl -pe 's/\x1b\[[0-9;]*[mGKHfABCDJsu]//g; s/\x1b\][^\x07]*\x07//g; s/\x1b\(B//g; s/\r//g' >> $TMPDIR/output.log"

# Step 6: wrapper with pid capture, manifest updates and done-file
tmux send-keys -t "claude-$TASK_NAME" \
  'cd '"$PROJECT"' && '"$AGENT"' & CLAUDE_PID=$!; echo "$CLAUDE_PID" > "$TASK_TMPDIR/pid"; jq --argjson pid "$CLAUDE_PID" ".pid = \$pid" "$TASK_TMPDIR/manifest.json" > "$TASK_TMPDIR/manifest.json.tmp" && mv "$TASK_TMPDIR/manifest.json.tmp" "$TASK_TMPDIR/manifest.json"; wait $CLAUDE_PID; ECODE=$?; echo "$ECODE" > "$TASK_TMPDIR/exit_code.tmp" && mv "$TASK_TMPDIR/exit_code.tmp" "$TASK_TMPDIR/exit_code"; if [ "$ECODE" -eq 0 ]; then STATUS=completed; else STATUS=failed; fi; jq --arg finished_at "$(date -u +"%Y-%m-%dT%H:%M:%SZ")" --argjson exit_code "$ECODE" --arg status "$STATUS" --arg output_tail "$(tail -n 100 "$TASK_TMPDIR/output.log" 2>/dev/null || echo "")" ". + {finished_at: \$finished_at, exit_code: \$exit_code, status: \$status, output_tail: \$output_tail}" "$TASK_TMPDIR/manifest.json" > "$TASK_TMPDIR/manifest.json.tmp" && mv "$TASK_TMPDIR/manifest.json.tmp" "$TASK_TMPDIR/manifest.json"; touch "$TASK_TMPDIR/done"' Enter
echo "$TMPDIR"
