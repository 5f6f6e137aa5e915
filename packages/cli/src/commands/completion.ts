import { type Command, CommandError } from '../command.ts'

const shells = ['bash', 'zsh', 'fish'] as const

/** `purser completion`: prints a script that completes the commands and their options. */
export function completionOf(others: readonly Command[]): Command {
  const completion: Command = {
    name: 'completion',
    summary: 'Print the script that completes commands in your shell.',
    positionals: ['<bash|zsh|fish>'],
    options: {},
    notes: [
      'bash: purser completion bash > ~/.local/share/bash-completion/completions/purser',
      'zsh:  echo \'eval "$(purser completion zsh)"\' >> ~/.zshrc',
      'fish: purser completion fish > ~/.config/fish/completions/purser.fish',
    ],
    async run({ positionals }) {
      const shell = shells.find((known) => known === positionals[0])
      if (shell === undefined) throw new CommandError(`The shell is one of ${shells.join(', ')}.`)
      const words = nextWords([...others, completion])
      const lines = shell === 'fish' ? fishScript(words) : [...(shell === 'zsh' ? zshPrefix : []), ...bashScript(words)]
      return { exitCode: 0, lines, json: { shell, script: `${lines.join('\n')}\n` } }
    },
  }
  return completion
}

/** The completions after the typed words of a command: further words, or options. */
type NextWords = ReadonlyMap<string, readonly string[]>

function nextWords(commands: readonly Command[]): NextWords {
  const found = new Map<string, Set<string>>()
  const add = (before: string, word: string): void => void found.set(before, (found.get(before) ?? new Set()).add(word))
  for (const { name, options } of commands) {
    const words = name.split(' ')
    for (const [at, word] of words.entries()) add(words.slice(0, at).join(' '), word)
    for (const option of [...Object.keys(options), 'format', 'help']) add(name, `--${option}`)
  }
  return new Map([...found].map(([before, words]) => [before, [...words]]))
}

function bashScript(words: NextWords): readonly string[] {
  const cases = [...words].map(([before, next]) => `    '${before}') next='${next.join(' ')}' ;;`)
  return [
    '_purser() {',
    '  local word before= next= candidate',
    `  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do`,
    `    candidate="\${before:+$before }$word"`,
    '    case "$candidate" in',
    `      ${[...words.keys()]
      .filter((before) => before !== '')
      .map((before) => `'${before}'`)
      .join('|')}) before="$candidate" ;;`,
    '    esac',
    '  done',
    '  case "$before" in',
    ...cases,
    '  esac',
    `  COMPREPLY=($(compgen -W "$next" -- "\${COMP_WORDS[COMP_CWORD]}"))`,
    '}',
    'complete -o default -F _purser purser',
  ]
}

const zshPrefix = ['autoload -U +X compinit && compinit', 'autoload -U +X bashcompinit && bashcompinit']

function fishScript(words: NextWords): readonly string[] {
  const lines = [...words].flatMap(([before, next]) => {
    const typed =
      before === '' ? '__fish_use_subcommand' : `string match -qr '^purser ${before}( |$)' -- (commandline -pc)`
    const plain = next.filter((word) => !word.startsWith('--'))
    const options = next
      .filter((word) => word.startsWith('--'))
      .map((word) => `complete -c purser -n "${typed}" -l ${word.slice(2)}`)
    return [...(plain.length > 0 ? [`complete -c purser -f -n "${typed}" -a "${plain.join(' ')}"`] : []), ...options]
  })
  return ['complete -c purser -e', ...lines]
}
