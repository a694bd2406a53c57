#include "coordinator/cli/completion.h"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace muster::cli {
namespace {

struct Flag {
  std::string name;  // --target
  std::string description;
};

struct Verb {
  std::string name;
  std::string description;
  std::vector<Flag> flags;
  std::vector<std::string> verbs;  // below it: accept, drain
};

/// Text that can stand between single quotes in every shell.
std::string quotable(std::string text) {
  std::replace(text.begin(), text.end(), '\'', ' ');
  return text;
}

std::vector<Flag> flags_of(const CLI::App& app) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      flags.push_back({"--" + name, quotable(option->get_description())});
    for (const std::string& name : option->get_snames())
      flags.push_back({"-" + name, quotable(option->get_description())});
  }
  return flags;
}

std::vector<Verb> verbs_of(const CLI::App& app) {
  std::vector<Verb> verbs;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    Verb verb{sub->get_name(), quotable(sub->get_description()), flags_of(*sub), {}};
    for (const CLI::App* below : sub->get_subcommands([](const CLI::App*) { return true; })) {
      verb.verbs.push_back(below->get_name());
    }
    verbs.push_back(std::move(verb));
  }
  return verbs;
}

std::string words(const Verb& verb) {
  std::string text;
  for (const std::string& below : verb.verbs) text += below + " ";
  for (const Flag& flag : verb.flags) text += flag.name + " ";
  text.pop_back();
  return text;
}

std::string bash(const std::vector<Verb>& verbs) {
  std::string names;
  std::string cases;
  for (const Verb& verb : verbs) {
    names += (names.empty() ? "" : " ") + verb.name;
    cases += "    " + verb.name + ") words='" + words(verb) + "' ;;\n";
  }
  return "# Put this into ~/.bashrc: source <(muster completion bash)\n"
         "_muster() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb= word words\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case $word in -*) ;; *) verb=$word; break ;; esac\n"
         "  done\n"
         "  case $previous in\n"
         "    -o|--output) COMPREPLY=($(compgen -W 'table json ndjson yaml' -- \"$current\")); return ;;\n"
         "    -c|--config|--data-dir) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n"
         "  esac\n"
         "  case $verb in\n"
         "    '') words='" +
         names + "' ;;\n" + cases +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _muster muster\n";
}

std::string zsh(const std::vector<Verb>& verbs) {
  std::string names;
  std::string cases;
  for (const Verb& verb : verbs) {
    names += "    '" + verb.name + ":" + verb.description + "'\n";
    cases += "    " + verb.name + ") compadd -- " + words(verb) + " ;;\n";
  }
  return "#compdef muster\n"
         "# Put this into a file _muster in a directory of $fpath.\n"
         "_muster() {\n"
         "  local -a verbs\n"
         "  verbs=(\n" +
         names +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe verb verbs\n"
         "    return\n"
         "  fi\n"
         "  case ${words[2]} in\n" +
         cases +
         "  esac\n"
         "  _files\n"
         "}\n"
         "compdef _muster muster\n";
}

std::string fish(const std::vector<Verb>& verbs) {
  std::string text = "# Put this into ~/.config/fish/completions/muster.fish\ncomplete -c muster -f\n";
  for (const Verb& verb : verbs) {
    text += "complete -c muster -n __fish_use_subcommand -a " + verb.name + " -d '" + verb.description + "'\n";
    const std::string when = "complete -c muster -n '__fish_seen_subcommand_from " + verb.name + "' ";
    for (const std::string& below : verb.verbs) text += when + "-a " + below + "\n";
    for (const Flag& flag : verb.flags) {
      const bool is_long = flag.name.compare(0, 2, "--") == 0;
      text += when + (is_long ? "-l " + flag.name.substr(2) : "-s " + flag.name.substr(1)) + " -d '" +
              flag.description + "'\n";
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& app, const std::string& shell) {
  const std::vector<Verb> verbs = verbs_of(app);
  return shell == "bash" ? bash(verbs) : shell == "zsh" ? zsh(verbs) : fish(verbs);
}

}  // namespace muster::cli
