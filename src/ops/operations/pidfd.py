# relight-signal 1
"""Sends a signal to processes by identity. Standard library only; read on standard input by the server's Python.

argv: root of /proc, its uptime when this was asked for, a signal's name, then pid and start ticks of each. A pidfd keeps
meaning the process that it was opened for: opened, then compared, then used. One line of verdict each, as the shell has
them; what it cannot do it says last, and leaves to the shell.
"""
import os
import signal
import sys

TOO_LATE_SECONDS = 3


def say(pid, verdict):
    os.write(1, ('%s %s\n' % (pid, verdict)).encode())


def words(path):
    with open(path, 'rb') as file:
        return file.read()


def send(proc, since, number, pid, ticks):
    try:
        process = os.pidfd_open(int(pid))
        fields = words('%s/%s/stat' % (proc, pid)).rpartition(b') ')[2].split()
    except (ProcessLookupError, FileNotFoundError):
        return 'gone'
    if fields[19] != ticks.encode():
        return 'other'
    if fields[0] == b'Z' and int(fields[17]) <= 1:
        return 'ended'
    # Whoever asked has gone on without this by then.
    if float(words(proc + '/uptime').split()[0]) - float(since) > TOO_LATE_SECONDS:
        sys.exit('Python came too late')
    try:
        signal.pidfd_send_signal(process, number)
    except ProcessLookupError:
        return 'gone'
    return 'sent'


def main():
    proc, since, name = sys.argv[1:4]
    if not (hasattr(os, 'pidfd_open') and hasattr(signal, 'pidfd_send_signal')):
        sys.exit('Python %d.%d has no pidfd' % sys.version_info[:2])
    number = getattr(signal, 'SIG' + name)
    for pid, ticks in zip(sys.argv[4::2], sys.argv[5::2]):
        try:
            say(pid, send(proc, since, number, pid, ticks))
        except OSError as error:
            sys.exit('no pidfd here: %s' % error.strerror)


main()
