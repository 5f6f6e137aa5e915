import { homedir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { CannotDo, type Outside } from './command.ts'

const secretBytesMax = 4_096

/** The machine that the program runs on. */
export function thisMachine(): Outside {
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

/** XDG Base Directory Specification 0.8; on Windows where programs of a user keep theirs. */
function settingsDirectory(env: NodeJS.ProcessEnv): string {
  const own = process.platform === 'win32' ? env.APPDATA : env.XDG_CONFIG_HOME
  return path.join(own !== undefined && path.isAbsolute(own) ? own : path.join(homedir(), '.config'), 'purser')
}

/** Aborted by the first Ctrl-C or end that is asked for; the second ends the process at once. */
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
      reject(new CannotDo('No key was given.'))
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
  if (line.trim() === '') throw new CannotDo('No key was given: type it when asked, pipe it in, or use --key.')
  return line
}
