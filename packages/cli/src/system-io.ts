import { homedir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { CommandError, type Io } from './command.ts'

const secretBytesMax = 4_096

/** The real machine: network, environment, terminal and signals. */
export function systemIo(): Io {
  let stopping: AbortSignal | undefined
  return {
    fetch: (input, init) => fetch(input, init),
    env: process.env,
    settingsDirectory: settingsDirectory(process.env),
    readSecret: (question) => (process.stdin.isTTY === true ? askUnseen(question) : firstLineOfStdin()),
    untilStopped: () => {
      stopping ??= signalled()
      return stopping
    },
    print: (text) => void process.stdout.write(text),
  }
}

/** XDG Base Directory Specification 0.8; `%APPDATA%` on Windows. */
function settingsDirectory(env: NodeJS.ProcessEnv): string {
  const own = process.platform === 'win32' ? env.APPDATA : env.XDG_CONFIG_HOME
  return path.join(own !== undefined && path.isAbsolute(own) ? own : path.join(homedir(), '.config'), 'purser')
}

/** Aborts on the first SIGINT, SIGTERM or SIGHUP; a second signal ends the process at once. */
function signalled(): AbortSignal {
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stopping.abort())
  return stopping.signal
}

function askUnseen(question: string): Promise<string> {
  process.stderr.write(question)
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() })
  const asking = createInterface({ input: process.stdin, output: unseen, terminal: true })
  return new Promise((resolve, reject) => {
    asking.once('line', (line) => {
      resolve(line)
      asking.close()
    })
    asking.once('close', () => {
      process.stderr.write('\n')
      reject(new CommandError('No key was given.'))
    })
  })
}

async function firstLineOfStdin(): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin) {
    text += String(chunk)
    if (text.includes('\n') || text.length > secretBytesMax) break
  }
  const [line = ''] = text.split('\n')
  if (line.trim() === '') throw new CommandError('No key was given. Type it at the prompt, pipe it in, or use --key.')
  return line
}
