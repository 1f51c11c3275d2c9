#!/usr/bin/env bash
# The bash design's monitor, as its documents give it: monitor NAME TASK_TMPDIR. One per task.
SESSION="claude-$1" TASK_TMPDIR=$2
tmux() { command tmux -S "$BENCH_TMUX" -f /dev/null "$@"; }

MONITOR_BASE_INTERVAL="${MONITOR_BASE_INTERVAL:-30}"
MONITOR_MAX_INTERVAL="${MONITOR_MAX_INTERVAL:-300}"
MONITOR_DEADLINE="${MONITOR_DEADLINE:-18000}"
MONITOR_GRACE_PERIOD="${MONITOR_GRACE_PERIOD:-30}"

get_mtime() {
  local file="$1"
  # The documents try BSD's `stat -f %m` first, which GNU stat takes for another question: GNU first, here.
  stat -c %Y "$file" 2>/dev/null || stat -f %m "$file" 2>/dev/null || echo 0
}

note_crash() {
  jq \
    --arg status "crashed" \
    --argjson retry_count "$RETRY_COUNT" \
    --arg last_checked_at "$(date -u +"%Y-%m-%dT%H:%M:%SZ")" \
    '. + {status: $status, retry_count: $retry_count, last_checked_at: $last_checked_at}' \
    "$TASK_TMPDIR/manifest.json" \
    > "$TASK_TMPDIR/manifest.json.tmp" \
    && mv "$TASK_TMPDIR/manifest.json.tmp" "$TASK_TMPDIR/manifest.json"
}

cleanup() {
  if [ -f "$TASK_TMPDIR/manifest.json" ] && [ ! -f "$TASK_TMPDIR/done" ]; then
    jq \
      --arg status "abandoned" \
      --arg abandoned_at "$(date -u +"%Y-%m-%dT%H:%M:%SZ")" \
      '. + {status: $status, abandoned_at: $abandoned_at}' \
      "$TASK_TMPDIR/manifest.json" \
      > "$TASK_TMPDIR/manifest.json.tmp" \
      && mv "$TASK_TMPDIR/manifest.json.tmp" "$TASK_TMPDIR/manifest.json"
  fi
  tmux pipe-pane -t "$SESSION" 2>/dev/null || true
  tmux kill-session -t "$SESSION" 2>/dev/null || true
}
trap cleanup EXIT

RETRY_COUNT=0
STALE_SINCE=""
START_TS="$(date +%s)"
DEADLINE_TS=$(( START_TS + MONITOR_DEADLINE ))

while true; do
  NOW_TS="$(date +%s)"

  if [ "$NOW_TS" -ge "$DEADLINE_TS" ]; then
    echo "Deadline reached (${MONITOR_DEADLINE}s). Stopping monitor."
    exit 1
  fi

  INTERVAL=$(( MONITOR_BASE_INTERVAL * (2 ** RETRY_COUNT) ))
  [ "$INTERVAL" -gt "$MONITOR_MAX_INTERVAL" ] && INTERVAL=$MONITOR_MAX_INTERVAL
  REMAINING=$(( DEADLINE_TS - NOW_TS ))
  [ "$INTERVAL" -gt "$REMAINING" ] && [ "$REMAINING" -gt 0 ] && INTERVAL=$REMAINING

  if tmux has-session -t "$SESSION" 2>/dev/null; then

    if [ ! -f "$TASK_TMPDIR/pid" ]; then
      sleep "$INTERVAL"
      continue
    fi
    PID="$(cat "$TASK_TMPDIR/pid")"

    # Layer 1: done-file
    if [ -f "$TASK_TMPDIR/done" ]; then
      EXIT_CODE="$(cat "$TASK_TMPDIR/exit_code" 2>/dev/null || echo "unknown")"
      echo "Task completed with exit code: $EXIT_CODE"
      exit 0
    fi

    # Layer 2: liveness
    if ! kill -0 "$PID" 2>/dev/null; then
      STALE_SINCE=""
      RETRY_COUNT=$(( RETRY_COUNT + 1 ))
      echo "Crash detected (PID $PID gone). Resuming (retry #$RETRY_COUNT)"
      note_crash
      tmux send-keys -t "$SESSION" "$BENCH_RESUME" Enter
      sleep 10
      continue
    fi

    # Layer 3: output staleness
    if [ -f "$TASK_TMPDIR/output.log" ]; then
      OUTPUT_MTIME=$(get_mtime "$TASK_TMPDIR/output.log")
      NOW_TS="$(date +%s)"
      OUTPUT_AGE=$(( NOW_TS - OUTPUT_MTIME ))
      STALENESS_THRESHOLD=$(( MONITOR_BASE_INTERVAL * 3 ))

      if [ "$OUTPUT_AGE" -gt "$STALENESS_THRESHOLD" ]; then
        if [ -z "$STALE_SINCE" ]; then
          STALE_SINCE="$NOW_TS"
          echo "Output stale (${OUTPUT_AGE}s). Grace period started."
        else
          GRACE_ELAPSED=$(( NOW_TS - STALE_SINCE ))
          if [ "$GRACE_ELAPSED" -ge "$MONITOR_GRACE_PERIOD" ]; then
            echo "Grace period expired (${GRACE_ELAPSED}s). Resuming."
            STALE_SINCE=""
            RETRY_COUNT=$(( RETRY_COUNT + 1 ))
            note_crash
            tmux send-keys -t "$SESSION" "$BENCH_RESUME" Enter
            sleep 10
            continue
          fi
        fi
      else
        STALE_SINCE=""
        RETRY_COUNT=0
      fi
    fi

    # Healthy
    RETRY_COUNT=0

  else
    echo "tmux session $SESSION no longer exists. Stopping monitor."
    exit 0
  fi

  sleep "$INTERVAL"
done
