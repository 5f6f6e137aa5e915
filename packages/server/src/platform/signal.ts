/** Tells parts of this process that something happened. Nothing is stored: whoever listens must also look by itself from time to time. */
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
