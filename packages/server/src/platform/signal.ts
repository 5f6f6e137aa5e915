/** Notifies listeners in this process that there may be work. Nothing is stored, so a listener must also poll. */
export interface Signal {
  /** Calls every listener. Never throws if no listener does. */
  readonly raise: () => void
  /** Calls `listener` at each signal until the returned function is called. */
  readonly listen: (listener: () => void) => () => void
}

export function createSignal(): Signal {
  const listeners = new Set<() => void>()
  return {
    raise: () => {
      for (const listener of listeners) listener()
    },
    listen: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
