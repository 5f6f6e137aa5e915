import type { ChildProcess } from 'node:child_process'
import { waitUntil } from './processes.ts'

type Guarded = { child: ChildProcess; signal: NodeJS.Signals; leave: () => void }

const guarded = new Set<Guarded>()
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const obeyMs = 30_000
let listening = false

/**
 * Makes sure that a child does not outlive this process when it ends in any way that it can notice: a normal exit, an
 * uncaught error, or a signal that nobody else handles. Whoever handles the signal itself stops the child itself, so
 * that a server can finish its requests while its database still answers. `leave` cleans up what the child would leave
 * behind, in a process that cannot wait any more. Returns the function that lets go.
 */
export function guardChild(child: ChildProcess, signal: NodeJS.Signals, leave: () => void = () => {}): () => void {
  const entry = { child, signal, leave }
  guarded.add(entry)
  listen()
  return () => {
    guarded.delete(entry)
    if (guarded.size === 0) silence()
  }
}

/** Signals a child, waits until it is dead, and goes on to the next, harder signal when it does not obey. */
export async function endChild(child: ChildProcess, signals: readonly NodeJS.Signals[]): Promise<void> {
  const gone = () => child.exitCode !== null || child.signalCode !== null
  for (const signal of signals) {
    child.kill(signal)
    if (await waitUntil(gone, obeyMs)) return
  }
  throw new Error(`Process ${child.pid} does not end`)
}

function signalChildren(): void {
  for (const { child, signal, leave } of guarded) {
    child.kill(signal)
    leave()
  }
}

function onSignal(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) > 1) return
  signalChildren()
  silence()
  process.kill(process.pid, signal)
}

function listen(): void {
  if (listening) return
  listening = true
  process.on('exit', signalChildren)
  for (const signal of signals) process.on(signal, onSignal)
}

function silence(): void {
  listening = false
  process.off('exit', signalChildren)
  for (const signal of signals) process.off(signal, onSignal)
}
