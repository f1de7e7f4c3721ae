#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_progress.py PROGRAM...: what a program that calls oly_progress for 3 s prints on a terminal of 60 columns is one line, written
anew a few times a second, and complete at the end."""
import fcntl
import os
import pty
import struct
import sys
import termios

COLUMNS = 60
process, terminal = pty.fork()
if process == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
output = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    output += piece
_, status = os.waitpid(process, 0)
text = output.decode()
lines = [line.replace("\x1b[K", "") for line in text.replace("\r\n", "\n").rstrip("\n").split("\r")]
versions = [line for line in lines if line]
for line in versions:
    print(line)
assert status == 0, f"exit status {status}"
assert text.count("\n") == 1, f"{text.count(chr(10))} lines"
assert 3 <= len(versions) <= 8, f"written {len(versions)} times"
assert all(len(line) < COLUMNS for line in versions), "a line is wider than the terminal"
assert all(line.startswith("counting: ") for line in versions)
assert "/s" in versions[0] and " left" in versions[0], versions[0]
assert " of 300 (100 %)" in versions[-1] and " in all" in versions[-1], versions[-1]
