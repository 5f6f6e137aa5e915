import { type ChildProcess, spawn } from 'node:child_process'
import { onTestFinished } from 'vitest'
import { bareEnv, program } from './stage.ts'

type Printed = Readonly<Record<string, unknown>>

/** `purser listen` as a process of its own. */
export interface ListeningProcess {
  /** The JSON values that it printed, one on each line. */
  readonly printed: readonly Printed[]
  /** The outputs of one kind. */
  of(kind: string): readonly Printed[]
  /** Resolves when it has printed this many of a kind. */
  until(kind: string, count?: number): Promise<readonly Printed[]>
  /** Everything on stdout, as it came. */
  text(): string
  errors(): string
  signal(signal: NodeJS.Signals): void
  readonly ended: Promise<number | null>
}

/** Starts it; with `--format json` among the arguments what it says is read. */
export function startListening(env: Readonly<Record<string, string>>, args: readonly string[]): ListeningProcess {
  const child = spawn(process.execPath, [program, 'listen', ...args], { env: { ...bareEnv(), ...env } })
  return new Reader(child, args.includes('json'))
}

class Reader implements ListeningProcess {
  readonly printed: Printed[] = []
  readonly ended: Promise<number | null>
  readonly #child: ChildProcess
  #text = ''
  #errors = ''
  #changed = Promise.withResolvers<void>()

  constructor(child: ChildProcess, isJson: boolean) {
    this.#child = child
    this.ended = new Promise((resolve) => child.once('close', resolve))
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await this.ended
    })
    let read = 0
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#text += text
      const end = this.#text.lastIndexOf('\n') + 1
      if (isJson)
        for (const line of this.#text.slice(read, end).split('\n').filter(Boolean)) this.printed.push(JSON.parse(line))
      read = end
      this.#changed.resolve()
      this.#changed = Promise.withResolvers()
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text
    })
  }

  of(kind: string): readonly Printed[] {
    return this.printed.filter((one) => one.kind === kind)
  }

  async until(kind: string, count = 1): Promise<readonly Printed[]> {
    const over = this.ended.then(() => 'over' as const)
    while (this.of(kind).length < count) {
      const how = await Promise.race([this.#changed.promise, over])
      if (how === 'over' && this.of(kind).length < count)
        throw new Error(`it ended before ${count} of ${kind}: ${this.#text}${this.#errors}`)
    }
    return this.of(kind)
  }

  text(): string {
    return this.#text
  }

  errors(): string {
    return this.#errors
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }
}
