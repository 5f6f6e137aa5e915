const echoMs = 1_000

/**
 * Aborts at the first Ctrl-C, SIGTERM or closed terminal; a later one ends the process at once. npm forwards signals
 * that the terminal has already sent to this process, so one within a second of the first counts as the same Ctrl-C.
 */
export function stopOnSignals(onFirst: () => void): { readonly signal: AbortSignal } {
  const controller = new AbortController()
  let firstAt = 0
  const onSignal = () => {
    if (controller.signal.aborted) {
      if (performance.now() - firstAt > echoMs) process.exit(130)
      return
    }
    firstAt = performance.now()
    onFirst()
    controller.abort(new Error('stopped by a signal'))
  }
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, onSignal)
  return { signal: controller.signal }
}
