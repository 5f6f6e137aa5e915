import type { ChildProcess } from 'node:child_process'
import { waitUntil } from './processes.ts'

type Guarded = { child: ChildProcess; signal: NodeJS.Signals; leave: () => void }

const guarded = new Set<Guarded>()
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const obeyMs = 30_000
let listening = false

/**
 * Ends a child when this process ends in any way that it can notice: a normal exit, an uncaught error, or a signal
 * without another handler. A process that handles the signal itself also stops the child itself, so that a server can
 * finish its requests while its database still responds. `leave` cleans up synchronously what the child would leave
 * behind. Returns the function that removes the guard.
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

/**
 * Sends the signals to a child in order, each after the child has not exited on the one before, and waits until it is
 * dead.
 */
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
