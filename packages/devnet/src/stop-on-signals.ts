const echoMs = 1_000

/**
 * Aborts at the first Ctrl-C, SIGTERM or closed terminal; a later one ends the process at once. npm sends on to us what
 * the terminal has sent us already, so what comes within a second of the first is the same Ctrl-C, not another.
 */
export function stopOnSignals(onFirst: () => void): { readonly signal: AbortSignal } {
  const controller = new AbortController()
  let firstAt = 0
  const hear = () => {
    if (controller.signal.aborted) {
      if (performance.now() - firstAt > echoMs) process.exit(130)
      return
    }
    firstAt = performance.now()
    onFirst()
    controller.abort(new Error('stopped by a signal'))
  }
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, hear)
  return { signal: controller.signal }
}
