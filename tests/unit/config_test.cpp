#include "coordinator/config.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

using namespace muster;
using Json = nlohmann::json;

namespace {

/// All mistakes of a document named f.yaml, a line each.
std::string mistakes_in(const std::string& yaml, const std::map<std::string, std::string>& env = {}) {
  std::string text;
  for (const ConfigMistake& mistake : parse_config(yaml, "f.yaml", env).mistakes) text += to_string(mistake) + "\n";
  return text;
}

Config good(const std::string& yaml, const std::map<std::string, std::string>& env = {}) {
  const ConfigResult result = parse_config(yaml, "f.yaml", env);
  for (const ConfigMistake& mistake : result.mistakes) FAIL_CHECK(to_string(mistake));
  return result.config;
}

Json target_config(const std::string& yaml) {
  const Config config = good("targets: [{name: t, namespace: FS, config: " + yaml + "}]");
  return Json::parse(config.targets.at(0).config.json);
}

/// A mistake: the document has an `@` where it is to be reported.
struct Mistake {
  const char* marked;
  const char* message;
};

void check_mistake(std::string text, const Mistake& mistake) {
  const std::size_t at = text.find('@');
  text.erase(at, 1);
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const std::size_t line_start = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  const std::string place = "f.yaml:" + std::to_string(line) + ":" + std::to_string(at - line_start + 1) + ": ";
  CAPTURE(text);
  CHECK(mistakes_in(text) == place + mistake.message + "\n");
}

}  // namespace

TEST_CASE("an empty configuration is the defaults") {
  for (const char* text : {"", "# nothing\n", "---\n", "{}", "workers:\ntargets:\n"}) {
    const Config config = good(text);
    CHECK(config.prefix == "muster");
    CHECK(config.nats.url.empty());
    CHECK(config.discovery_interval == Millis{300'000});
    CHECK(config.drift_interval == Millis{0});
    CHECK(config.targets.empty());
  }
}

TEST_CASE("a folder of plugins, and what each of its processes may use") {
  const Config config = good(
      "workers: [{folder: /opt/plugins, verify: required, count: 2, limits: {memory: 512MiB, cpu: 0.5}}, "
      "{folder: other, limits: {memory: 16777216}}]");
  REQUIRE(config.workers.size() == 2);
  CHECK(config.workers[0].folder == "/opt/plugins");
  CHECK(config.workers[0].plugin.empty());
  CHECK(config.workers[0].verify == Verify::kRequired);
  CHECK(config.workers[0].limits == ProcessLimits{512ULL << 20, 0.5});
  CHECK(config.workers[1].verify == Verify::kIfListed);
  CHECK(config.workers[1].limits == ProcessLimits{16ULL << 20, 0});
}

TEST_CASE("bytes have units of 1024") {
  CHECK(parse_bytes("1024") == 1024U);
  CHECK(parse_bytes("64KiB") == 65536U);
  CHECK(parse_bytes("512MiB") == 512ULL << 20);
  CHECK(parse_bytes("3GiB") == 3ULL << 30);
  CHECK(parse_bytes("16383TiB") == 16383ULL << 40);
  for (const char* bad : {"", "MiB", "1MB", "1 MiB", "-1MiB", "1.5GiB", "16777216TiB", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_bytes(bad));
  }
}

TEST_CASE("a whole configuration") {
  const Config config = good(R"(
nats: {url: "nats://a:1,tls://b:2", creds: /c, nkey_seed: /n, tls: {ca: /ca, cert: /cert, key: /key}}
prefix: team-a.muster
data_dir: /data
store: sqlite:/data/x.db
workers:
  - plugin: postgres
    pool: site-b
    count: 3
    slots: 8
    env: {PGPASSWORD: "${env:SECRET}", N: 5}
    allow: {env: [PG_*], files: [/run/secrets]}
targets:
  - name: db.1
    namespace: PG
    pool: site-b
    config: {dsn: "host=x password=${env:PG_PASSWORD}"}
    discover: false
    interval: 90s
    renamed_from: db.0
    filters:
      - types: [PG::Table, PG::Schema]
        action: include
        conditions:
          - tag: {keys: [Env, env], value: tmp}
          - property: {path: "$.name", op: regex, value: "^tmp_"}
          - property: {path: "$.size", op: eq, value: 5}
          - property: {path: "$.owner", op: contains, value: [a, null]}
          - property: {path: "$.x", op: exists}
          - property: {path: "$.y"}
          - property: {path: "$.z", op: regex, value: ""}
discovery: {interval: 1h}
drift: {interval: 7d}
retry: {attempts: 3, base: 100ms, max: 1m}
limits: {requests_per_second: 2.5, event_bytes: 2097152, event_age: 1d, jobs_in_flight: 9, resources_per_type: 7,
  run_deadline: 2h, job_deadline: 30s}
)");
  CHECK(config.nats.url == "nats://a:1,tls://b:2");
  CHECK(config.nats.tls_key == "/key");
  CHECK(config.prefix == "team-a.muster");
  CHECK(config.store == "sqlite:/data/x.db");
  REQUIRE(config.workers.size() == 1);
  const WorkerConfig& worker = config.workers[0];
  CHECK(worker.plugin == "postgres");
  CHECK(worker.pool == "site-b");
  CHECK(worker.count == 3);
  CHECK(worker.slots == 8);
  CHECK(worker.env == std::map<std::string, std::string>{{"N", "5"}, {"PGPASSWORD", "${env:SECRET}"}});
  CHECK(worker.allow_env == std::vector<std::string>{"PG_*"});
  CHECK(worker.allow_files == std::vector<std::string>{"/run/secrets"});
  REQUIRE(config.targets.size() == 1);
  const TargetConfig& target = config.targets[0];
  CHECK(target.name == "db.1");
  CHECK(target.ns == "PG");
  CHECK_FALSE(target.discover);
  CHECK(target.interval == Millis{90'000});
  CHECK(target.renamed_from == "db.0");
  CHECK(target.config.json == R"({"dsn":null})");
  CHECK(target.config.secrets ==
        std::vector<Secret>{
            {"/dsn", {{SecretPart::Kind::kLiteral, "host=x password="}, {SecretPart::Kind::kEnv, "PG_PASSWORD"}}}});
  REQUIRE(target.filters.size() == 1);
  CHECK(target.filters[0] ==
        MatchFilter{
            {"PG::Table", "PG::Schema"},
            {TagMatch{{"Env", "env"}, "tmp"}, PropertyMatch{"$.name", MatchOp::kRegex, R"("^tmp_")"},
             PropertyMatch{"$.size", MatchOp::kEq, "5"}, PropertyMatch{"$.owner", MatchOp::kContains, R"(["a",null])"},
             PropertyMatch{"$.x", MatchOp::kExists, ""}, PropertyMatch{"$.y", MatchOp::kExists, ""},
             PropertyMatch{"$.z", MatchOp::kRegex, ""}},
            FilterAction::kInclude});
  CHECK(config.discovery_interval == Millis{3'600'000});
  CHECK(config.drift_interval == Millis{7LL * 86'400'000});
  CHECK(config.retry.attempts == 3);
  CHECK(config.retry.base == Millis{100});
  CHECK(config.retry.max == Millis{60'000});
  CHECK(config.limits.requests_per_second == 2.5);
  CHECK(config.limits.event_bytes == 2097152);
  CHECK(config.limits.jobs_in_flight == 9);
  CHECK(config.limits.resources_per_type == 7);
  CHECK(config.limits.job_deadline == Millis{30'000});
}

TEST_CASE("every mistake is told with its place") {
  const std::vector<Mistake> mistakes{
      {"prefix: @'a b'\n", "prefix: expected dot-separated words of letters, digits, _ and -, found `a b`"},
      {"@prefx: a\n", "unknown key `prefx`; did you mean `prefix`?"},
      {"discovery:\n  @frequency: 5m\n", "discovery: unknown key `frequency`; known are interval"},
      {"prefix: a\n@prefix: b\n", "the key `prefix` stands here twice"},
      {"prefix: @[a]\n", "prefix: expected dot-separated words of letters, digits, _ and -, found a list"},
      {"@[]\n", "expected a mapping, found a list"},
      {"workers: @fs\n", "workers: expected a list, found a single value"},
      {"workers: [@fs]\n", "workers[0]: expected a mapping, found a single value"},
      {"workers:\n  - @count: 1\n", "workers[0]: `plugin` or `folder` is missing"},
      {"workers:\n  - @{plugin: fs, folder: /p}\n",
       "workers[0]: `plugin` and `folder` exclude each other: write an entry for each"},
      {"workers: [{plugin: fs, verify: @required}]\n", "workers[0]: `verify` is about a `folder`"},
      {"workers: [{folder: /p, verify: @always}]\n",
       "workers[0].verify: expected if-listed or required, found `always`"},
      {"workers: [{folder: /p, limits: {memory: @1MiB}}]\n",
       "workers[0].limits.memory: expected bytes like 512MiB, from 16MiB to 1024TiB"},
      {"workers: [{folder: /p, limits: {memory: @512MB}}]\n",
       "workers[0].limits.memory: expected bytes like 512MiB, from 16MiB to 1024TiB"},
      {"workers: [{folder: /p, limits: {cpu: @0}}]\n", "workers[0].limits.cpu: expected a number from 0.01 to 1024.0"},
      {"workers: [{folder: /p, limits: {@disk: 1}}]\n", "workers[0].limits: unknown key `disk`; known are memory, cpu"},
      {"workers: [{plugin: fs, count: @257}]\n", "workers[0].count: expected a whole number from 0 to 256"},
      {"workers:\n  - @{plugin: fs, count: 2, max: 3}\n",
       "workers[0]: `count` is a fixed number: write it, or `min` and `max`"},
      {"workers:\n  - @{plugin: fs, min: 4, max: 3}\n", "workers[0]: `max` is less than `min`"},
      {"workers:\n  - @{plugin: fs, min: 2}\n",
       "workers[0]: `min` needs a `max`: jobs that wait get more workers up to that"},
      {"workers: [{plugin: fs, min: @0, max: 2}]\n", "workers[0].min: expected a whole number from 1 to 256"},
      {"workers: [{plugin: fs, count: @'2'}]\n", "workers[0].count: expected a whole number from 0 to 256"},
      {"workers: [{plugin: fs, slots: @1.5}]\n", "workers[0].slots: expected a whole number from 1 to 1024"},
      {"workers: [{plugin: fs, pool: @a.b}]\n",
       "workers[0].pool: expected a pool: letters, digits, _ and -, at most 64, found `a.b`"},
      {"workers: [{plugin: fs, env: {@1A: x}}]\n", "workers[0].env.1A: not a name of an environment variable"},
      {"workers: [{plugin: fs, env: {A: @'${env:}'}}]\n",
       "workers[0].env.A: ${env:}: the name of an environment variable is expected after `env:`"},
      {"workers: [{plugin: fs, allow: {files: [@run]}}]\n",
       "workers[0].allow.files[0]: expected an absolute directory, found `run`"},
      {"discovery: {interval: @5 minutes}\n", "discovery.interval: expected a duration like 250ms, 10s, 5m, 1h or 7d"},
      {"discovery: {interval: @10ms}\n", "discovery.interval: expected 0s (off) or at least 100ms, found `10ms`"},
      {"nats: {url: @'http://x'}\n",
       "nats.url: expected nats://host:port or tls://host:port (several: with commas), found `http://x`"},
      {"nats: {url: @'nats://a:b@x:4222,nats://y:65536'}\n",
       "nats.url: expected nats://host:port or tls://host:port (several: with commas), found "
       "`nats://***@x:4222,nats://y:65536`"},
      {"nats: {url: @'nats:/u:secret@x:4222'}\n",
       "nats.url: expected nats://host:port or tls://host:port (several: with commas), found `***@x:4222`"},
      {"nats: {url: @'nats://u:se,cret@x:4222'}\n",
       "nats.url: expected nats://host:port or tls://host:port (several: with commas), found `nats://***@x:4222`"},
      {"store: @mysql://u:secret@x\n", "store: expected sqlite:PATH or postgresql://..., found `mysql://***@x`"},
      {"nats: {tls: @{cert: /c}}\n", "nats.tls: `cert` and `key` belong together"},
      {"store: @mysql://x\n", "store: expected sqlite:PATH or postgresql://..., found `mysql://x`"},
      {"retry: @{base: 1m, max: 1s}\n", "retry: `max` is less than `base`"},
      {"limits: {requests_per_second: @-1}\n", "limits.requests_per_second: expected a number from 0.0 to 1000000.0"},
      {"targets:\n  - {name: @a b, namespace: FS}\n",
       "targets[0].name: expected a name: letters, digits, `.`, `_` and `-`, at most 64, found `a b`"},
      {"targets:\n  - {name: a, namespace: FS}\n  - {name: @a, namespace: PG}\n",
       "targets[1].name: another target has the name `a`"},
      {"targets: [@{name: a}]\n", "targets[0]: `namespace` is missing"},
      {"targets: [{name: a, namespace: @F.S}]\n", "targets[0].namespace: expected a namespace like PG, found `F.S`"},
      {"targets: [{name: a, namespace: FS, discover: @'no'}]\n", "targets[0].discover: expected true or false"},
      {"targets: [{name: a, namespace: FS, config: @text}]\n",
       "targets[0].config: expected a mapping, found a single value"},
      {"targets: [{name: a, namespace: FS, config: {x: @.inf}}]\n",
       "targets[0].config: the number `.inf` is out of range: quote it to make it text"},
      {"targets: [{name: a, namespace: FS, config: {x: {y: 1, @y: 2}}}]\n",
       "targets[0].config: the key `y` stands here twice"},
      {"targets: [{name: a, namespace: FS, config: {x: @'${env:A'}}]\n",
       "targets[0].config: a reference without its `}`; $${ stands for a literal ${"},
      {"targets: [{name: a, namespace: FS, config: {x: @'${file:a}'}}]\n",
       "targets[0].config: ${file:a}: an absolute path is expected after `file:`"},
      {"targets: [{name: a, namespace: FS, config: {x: @'${secret:../a}'}}]\n",
       "targets[0].config: ${secret:../a}: a file name is expected after `secret:`"},
      {"targets: [{name: a, namespace: FS, config: {x: @'${HOME}'}}]\n",
       "targets[0].config: ${HOME}: not a reference: ${env:NAME}, ${file:/path} or ${secret:NAME}; $${ stands for a "
       "literal ${"},
      {"targets: [{name: a, namespace: FS, config: {@'${env:A}': x}}]\n",
       "targets[0].config: a secret reference may not stand in a key"},
      {"data_dir: @'${env:HOME}'\n",
       "data_dir: a secret reference may stand in a target's config and a worker's env only"},
  };
  for (const Mistake& one : mistakes) check_mistake(one.marked, one);
}

TEST_CASE("every mistake of a filter is told with its place") {
  const std::vector<Mistake> mistakes{
      {"{types: [FS::File], action: @keep}", "action: expected exclude or include, found `keep`"},
      {"{types: [@File]}", "types[0]: expected a type like PG::Table, found `File`"},
      {"{types: [@PG::Table]}", "types[0]: `PG::Table` is not a type of the target's namespace FS"},
      {"{conditions: [@{}]}", "conditions[0]: a condition is either a `tag` or a `property`"},
      {"{conditions: [@{tag: {keys: [a]}, property: {path: $.a}}]}",
       "conditions[0]: a condition is either a `tag` or a `property`"},
      {"{conditions: [{tag: @{value: a}}]}", "conditions[0].tag: `keys` is missing"},
      {"{conditions: [{tag: @{keys: []}}]}", "conditions[0].tag: `keys` is empty"},
      {"{conditions: [{property: @{op: eq, value: 1}}]}", "conditions[0].property: `path` is missing"},
      {"{conditions: [{property: {path: $.a, op: @like, value: 1}}]}",
       "conditions[0].property.op: expected eq, contains, regex or exists, found `like`"},
      {"{conditions: [{property: @{path: $.a, value: 1}}]}",
       "conditions[0].property: `op` is missing: how is the value compared?"},
      {"{conditions: [{property: {path: $.a, op: regex, value: @'('}}]}",
       "conditions[0].property.value: not a regular expression (RE2): missing ): ("},
      {"{conditions: [{property: {path: $.a, op: regex, value: @'\\p{L}{64}'}}]}",
       "conditions[0].property.value: the regular expression `\\p{L}{64}` is too large: compiled it takes more than "
       "128 "
       "KiB"},
      {"{conditions: [{property: {path: @'a[', op: exists}}]}",
       "conditions[0].property.path: column 1: a JSONPath begins with $"},
  };
  for (const Mistake& one : mistakes) {
    const std::string message = std::string("targets[0].filters[0].") + one.message;
    check_mistake("targets:\n- name: a\n  namespace: FS\n  filters:\n  - " + std::string(one.marked) + "\n",
                  {one.marked, message.c_str()});
  }
}

TEST_CASE("filters that are right each but too much together are told") {
  std::string filters = "@";
  for (int i = 0; i < 257; ++i) {
    filters += (i == 0 ? "- " : "  - ") + std::string("{conditions: [{property: {path: $.a, op: regex, value: a") +
               std::to_string(i) + "}}]}\n";
  }
  const auto text = "targets:\n- name: a\n  namespace: FS\n  filters:\n  " + filters;
  check_mistake(text, {text.c_str(),
                       "targets[0].filters: filter 257, condition 1: regex: more than 256 different regular "
                       "expressions"});
}

TEST_CASE("all mistakes are told at once, in the order of the text") {
  CHECK(mistakes_in("prefix: '!'\nworkers:\n  - {count: x}\ntargets:\n  - {namespace: FS, nme: a}\n") ==
        "f.yaml:1:9: prefix: expected dot-separated words of letters, digits, _ and -, found `!`\n"
        "f.yaml:3:5: workers[0]: `plugin` or `folder` is missing\n"
        "f.yaml:3:13: workers[0].count: expected a whole number from 0 to 256\n"
        "f.yaml:5:5: targets[0]: `name` is missing\n"
        "f.yaml:5:21: targets[0]: unknown key `nme`; did you mean `name`?\n");
}

TEST_CASE("text that is no YAML document") {
  CHECK(mistakes_in("a: b: c\n") == "f.yaml:1:5: mapping values are not allowed in this context\n");
  CHECK(mistakes_in("workers:\n\t- plugin: fs\n") == "f.yaml:2:1: a tab: lines are indented with spaces\n");
  CHECK(mistakes_in("prefix: @a\n") == "f.yaml:1:9: a value that begins with @ must be quoted\n");
  CHECK(mistakes_in("workers: [\nprefix: a\n") ==
        "f.yaml:3:1: did not find expected ',' or ']' while parsing a flow sequence, from line 1\n");
  CHECK(mistakes_in("é: [*x]\n") == "f.yaml:1:6: the referenced anchor is not defined\n");
  CHECK(mistakes_in("ü: é\n'€', 'ö': [*x]\n").find("f.yaml:2:") == 0);
  CHECK(mistakes_in("prefix: a\n---\nprefix: b\n") == "f.yaml:2:1: a second document begins here: a file holds one\n");
  CHECK(mistakes_in("prefix: a\ndata_dir: \xff\n") == "f.yaml:2:11: not UTF-8 text\n");
  CHECK(mistakes_in("prefix: \x01\n") == "f.yaml:1:9: a control character\n");
  CHECK(mistakes_in("data_dir: !path /x\n") == "f.yaml:1:11: the tag !path is not supported\n");
  CHECK(mistakes_in("? [a]\n: b\n") == "f.yaml:1:3: a key must be a single word\n");
  CHECK(mistakes_in("<<: {prefix: a}\n") == "f.yaml:1:1: merge keys are not supported: write the keys out\n");
  CHECK(mistakes_in("prefix: *a\n") == "f.yaml:1:9: the referenced anchor is not defined\n");
  CHECK(mistakes_in(std::string(129U << 20U, '#')) == "f.yaml:1:1: larger than 128 MiB\n");
  CHECK(mistakes_in(std::string(2000, '[')) == "f.yaml:1:501: deeper than 500 levels\n");
}

TEST_CASE("JSON escapes characters beyond U+FFFF by two") {
  const std::string config = R"({"root": "/\ud83d\ude00 \\ud83d\uD83D\uDE00", "a\ud83d\ude00" :[]})";
  const auto document = [&](const std::string& more) {
    return R"({"targets": [{"name": "t", "namespace": "FS", "config": )" + config + more + "}]}";
  };
  CHECK(Json::parse(good(document("")).targets.at(0).config.json) == Json::parse(config));
  check_mistake(
      document(R"(, @"nope": 1)"),
      {"",
       "targets[0]: unknown key `nope`; known are name, namespace, pool, config, discover, filters, interval, "
       "renamed_from"});
  CHECK(mistakes_in(R"({"prefix": "\ud83d"})") ==
        "f.yaml:1:15: found invalid Unicode character escape code while parsing a quoted scalar\n");
}

TEST_CASE("line breaks that only old YAML knows are refused, as it would change them") {
  for (const char* each : {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
    check_mistake("targets: [{name: t, namespace: FS, config: {root: \"é @" + std::string(each) + " b\"}}]\n",
                  {"", "a line break that is none in JSON: write it as an escape in double quotes"});
  }
  CHECK(target_config(R"({root: "\u2028"})")["root"] == "\xE2\x80\xA8");
}

TEST_CASE("an alias repeats what it names, within bounds") {
  const Config config =
      good("targets:\n- {name: a, namespace: FS, config: &c {root: /x}}\n- {name: b, namespace: FS, config: *c}\n");
  CHECK(config.targets.at(1).config.json == R"({"root":"/x"})");
  CHECK(mistakes_in("a: &a [*a]\n") == "f.yaml:1:8: an alias inside of what it names\n");
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string inner = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + inner;
    for (int j = 1; j < 10; ++j) bomb += ", " + inner;
    bomb += "]\n";
  }
  CHECK(mistakes_in(bomb).find("f.yaml:6:") == 0);
  CHECK(mistakes_in(bomb).find("aliases repeat too many values for so short a text") != std::string::npos);
}

TEST_CASE("scalars are typed by the core schema, quoted ones are text") {
  CHECK(
      target_config("{a: 1, b: -0x, c: 0x1F, d: 0o17, e: 017, f: +3, g: 1e3, h: .5, i: 1., j: 18446744073709551615}") ==
      Json::parse(
          R"({"a":1,"b":"-0x","c":31,"d":15,"e":17,"f":3,"g":1000.0,"h":0.5,"i":1.0,"j":18446744073709551615})"));
  CHECK(
      target_config(
          "{a: true, b: yes, c: 'true', d: \"1\", e: ~, f: null, g: 'null', h: , i: no, j: FALSE, k: 1:30}") ==
      Json::parse(
          R"({"a":true,"b":"yes","c":"true","d":"1","e":null,"f":null,"g":"null","h":null,"i":"no","j":false,"k":"1:30"})"));
  CHECK(target_config("{a: !!str 5, b: 2024-01-01, c: '', d: [1, [], {}]}") ==
        Json::parse(R"({"a":"5","b":"2024-01-01","c":"","d":[1,[],{}]})"));
}

TEST_CASE("JSON is YAML") {
  const Config config = good(
      "{\n\t\"targets\": [\n\t\t{\"name\": \"a\", \"namespace\": \"FS\", \"config\": {\"root\": "
      "\"/\\u00e9\\n\"}}\n\t]\n}\n");
  CHECK(Json::parse(config.targets.at(0).config.json) == Json{{"root", "/é\n"}});
}

TEST_CASE("secret references are taken out of a target's config") {
  const Config config = good(
      "targets: [{name: t, namespace: FS, config: {a/b: ['x', '${env:A}${file:/f/g}-${secret:s.1}'], c: '$${env:A} $5 "
      "$', "
      "d: {'~': '${env:_B}'}}}]");
  const Document& document = config.targets.at(0).config;
  CHECK(document.json == R"({"a/b":["x",null],"c":"${env:A} $5 $","d":{"~":null}})");
  using Kind = SecretPart::Kind;
  CHECK(document.secrets ==
        std::vector<Secret>{
            {"/a~1b/1", {{Kind::kEnv, "A"}, {Kind::kFile, "/f/g"}, {Kind::kLiteral, "-"}, {Kind::kSecret, "s.1"}}},
            {"/d/~0", {{Kind::kEnv, "_B"}}}});
}

TEST_CASE("the environment overrides the file") {
  const Config config = good("nats: {url: nats://file:1}\nprefix: file\n", {{"MUSTER_NATS_URL", "tls://env:2"},
                                                                            {"MUSTER_PREFIX", ""},
                                                                            {"MUSTER_DATA_DIR", "/env"},
                                                                            {"MUSTER_STORE", "postgresql://h/d"},
                                                                            {"MUSTER_DISCOVERY_INTERVAL", "1h"},
                                                                            {"MUSTER_DRIFT_INTERVAL", "0"}});
  CHECK(config.nats.url == "tls://env:2");
  CHECK(config.prefix == "file");
  CHECK(config.data_dir == "/env");
  CHECK(config.store == "postgresql://h/d");
  CHECK(config.discovery_interval == Millis{3'600'000});
  CHECK(mistakes_in("prefix: '!'\n", {{"MUSTER_DISCOVERY_INTERVAL", "soon"}}) ==
        "f.yaml:1:9: prefix: expected dot-separated words of letters, digits, _ and -, found `!`\n"
        "$MUSTER_DISCOVERY_INTERVAL: expected a duration like 250ms, 10s, 5m, 1h or 7d\n");
  for (const auto* url : {"nats://h", "nats://u:p@h", "nats://[::1]", "tls://[::1]:1", "nats://t@h:65535,nats://i"}) {
    CHECK(mistakes_in("", {{"MUSTER_NATS_URL", url}}).empty());
  }
  for (const auto* url : {"nats://h:0", "nats://h:", "nats://h:x", "nats://u:p@h:99999", "tls://[::1]:1x"}) {
    CHECK_FALSE(mistakes_in("", {{"MUSTER_NATS_URL", url}}).empty());
  }
  // One signs in in one way: another one of the file would be taken first.
  const std::string both = "nats: {creds: /file.creds, nkey_seed: /file.nk}\n";
  CHECK(good(both, {{"MUSTER_NATS_NKEY_SEED", "/env.nk"}}).nats.creds.empty());
  CHECK(good(both, {{"MUSTER_NATS_NKEY_SEED", "/env.nk"}}).nats.nkey_seed == "/env.nk");
  CHECK(good(both, {{"MUSTER_NATS_CREDS", "/env.creds"}}).nats.creds == "/env.creds");
  CHECK(good(both, {{"MUSTER_NATS_CREDS", "/env.creds"}}).nats.nkey_seed.empty());
  CHECK(good(both, {{"MUSTER_NATS_CREDS", ""}}).nats.creds == "/file.creds");
  const std::string apart = "$MUSTER_NATS_TLS_CERT: it and $MUSTER_NATS_TLS_KEY belong together\n";
  CHECK(mistakes_in("", {{"MUSTER_NATS_TLS_KEY", "/key.pem"}}) == apart);
  CHECK(mistakes_in("", {{"MUSTER_NATS_TLS_CERT", "/cert.pem"}, {"MUSTER_NATS_TLS_KEY", ""}}) == apart);
  CHECK(mistakes_in("", {{"MUSTER_NATS_TLS_CERT", "/cert.pem"}, {"MUSTER_NATS_TLS_KEY", "/key.pem"}}).empty());
}

TEST_CASE("a file that cannot be read is a mistake") {
  const auto result = load_config("/nowhere/muster.yaml", {});
  REQUIRE(result.mistakes.size() == 1);
  CHECK(to_string(result.mistakes[0]) == "/nowhere/muster.yaml: cannot be read: No such file or directory");
  CHECK(load_config("/", {}).mistakes.size() == 1);
  CHECK(load_config("", {}).mistakes.empty());
}

TEST_CASE("durations") {
  CHECK(parse_duration("250ms") == Millis{250});
  CHECK(parse_duration("10s") == Millis{10'000});
  CHECK(parse_duration("5m") == Millis{300'000});
  CHECK(parse_duration("1h") == Millis{3'600'000});
  CHECK(parse_duration("7d") == Millis{604'800'000});
  CHECK(parse_duration("0") == Millis{0});
  for (const char* bad :
       {"", "5", "s", "-1s", "+1s", "1.5s", "1 s", "1S", "1s ", "99999999999999999999s", "9223372036854775807d"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_duration(bad));
  }
}
