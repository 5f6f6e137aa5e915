import type { ChildProcess } from 'node:child_process'

type Guarded = { child: ChildProcess; signal: NodeJS.Signals }

const guarded = new Set<Guarded>()
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
let listening = false

/**
 * Makes sure that a child does not outlive this process when it ends in any way that it can notice: a normal exit, an
 * uncaught error, or a signal that nobody else handles. Whoever handles the signal itself stops the child itself, so
 * that a server can finish its requests while its database still answers. Returns the function that lets go.
 */
export function guardChild(child: ChildProcess, signal: NodeJS.Signals): () => void {
  const entry = { child, signal }
  guarded.add(entry)
  listen()
  return () => {
    guarded.delete(entry)
    if (guarded.size === 0) silence()
  }
}

function signalChildren(): void {
  for (const { child, signal } of guarded) child.kill(signal)
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
