#!/bin/bash
# request.sh SUBJECT BODY: a request to the JetStream API of the server at $CONFORMANCE_URL, by the text protocol.
set -eu
url=${CONFORMANCE_URL#nats://}
address=${url#*@} login=${url%@*}
exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
printf 'CONNECT {"verbose":false,"user":"%s","pass":"%s"}\r\nSUB _INBOX.kit 1\r\nPUB %s _INBOX.kit %d\r\n%s\r\n' \
  "${login%:*}" "${login#*:}" "$1" "${#2}" "$2" >&3
while read -r -u 3 line; do
  case $line in
    MSG*) read -r -u 3 answer; break ;;
    -ERR*) echo "$line"; exit 1 ;;
  esac
done
echo "$answer"
[[ $answer != *'"error"'* ]]
