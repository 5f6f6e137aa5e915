import { Session } from 'node:inspector/promises'
import path from 'node:path'

/** Counts the functions that run in this process. */
export interface Coverage {
  /** The functions that ran since the last time, each as `file name offset`, with the number of their calls. Files are below `packages`. */
  take(): Promise<Record<string, number>>
}

const packages = `${path.join(import.meta.dirname, '..', 'packages')}/`

/** V8 counts from now on; functions that were optimized before are counted too. */
export async function startCoverage(): Promise<Coverage> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  return {
    async take() {
      const { result } = await session.post('Profiler.takePreciseCoverage')
      const own = result.filter(({ url }) => url.startsWith(`file://${packages}`) && !url.includes('/node_modules/'))
      const counts = own.flatMap(({ url, functions }) =>
        functions.flatMap(({ functionName, ranges: [range] }) => {
          const file = url.slice(`file://${packages}`.length)
          const isRun = range !== undefined && range.count > 0
          return isRun ? [[`${file} ${functionName || '-'} ${range.startOffset}`, range.count] as const] : []
        }),
      )
      return Object.fromEntries(counts)
    },
  }
}
