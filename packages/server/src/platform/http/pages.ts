import type { Clock } from '../clock.ts'
import type { Deps } from '../ctx.ts'
import { takesWrites } from '../db/durability.ts'
import { isMigrated } from '../db/migrate.ts'
import { failPlatform } from '../errors.ts'
import type { Operation } from '../operation.ts'
import { newRequestId, problemResponse, type RawResponse } from './call.ts'
import { guidePages } from './guides/guide-pages.ts'
import { referencePage } from './reference/reference.ts'
import { referencePages } from './reference/reference-pages.ts'
import type { PublicPage } from './server.ts'
import { documentPages, tagsOf } from './tag-documents.ts'

/** Pages that need no key: health, the API's description, its documentation, and one page for each error code. */
export function publicPages(
  deps: Deps,
  operations: readonly Operation[],
  makeDocument: () => Readonly<Record<string, unknown>>,
  isStopping: () => boolean = () => false,
): PublicPage[] {
  const missing = (): RawResponse =>
    problemResponse({ ...deps, requestId: newRequestId(deps) }, failPlatform('not-found'))
  let made: ReturnType<typeof makeDocument> | undefined
  const document = () => {
    made ??= makeDocument()
    return made
  }
  const ready = sharedForHalfASecond(deps.clock, () => readinessWithin(deps))
  const pages: PublicPage[] = [
    healthPage,
    { path: '/readyz', respond: () => (isStopping() ? json({ status: 'stopping' }, 503) : ready()) },
    ...documentPages(document, missing),
    ...referencePages(missing),
    ...guidePages({
      baseUrl: deps.baseUrl,
      operations,
      reference: () => referencePage(document(), deps.baseUrl),
      tags: () => tagsOf(document()),
      missing,
    }),
  ]
  return pages.map((page) => ({ ...page, crossOrigin: true }))
}

/** Reports that the process responds. It does not query the database, so that a liveness probe does not restart processes while the database is down. */
export const healthPage: PublicPage = { path: '/healthz', respond: () => json({ status: 'ok' }) }

/** Prometheus text; on its own port in production, on the main one under `npm start`. `refresh` updates the gauges that are read on request. */
export function metricsPage(deps: Pick<Deps, 'metrics'>, refresh: () => Promise<void>): PublicPage {
  return {
    path: '/metrics',
    respond: async () => {
      await refresh()
      return {
        status: 200,
        headers: { 'content-type': deps.metrics.registry.contentType },
        body: await deps.metrics.registry.metrics(),
      }
    },
  }
}

function json(value: unknown, status = 200): RawResponse {
  return { status, headers: { 'content-type': 'application/json; charset=utf-8' }, body: JSON.stringify(value) }
}

/** Milliseconds for which the result of a readiness check is returned again: well below the seconds in which a lost database must be noticed. */
const readinessAgeMsMax = 500

/**
 * Shares one run among the calls that arrive while it is in progress and for half a second afterwards: no limit applies to readiness, and anybody may
 * request it. So it makes at most a few statements twice a second.
 */
function sharedForHalfASecond<T>(clock: Clock, run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  let last: { readonly result: T; readonly endedAtMs: number } | undefined
  return async () => {
    const ageMs = last === undefined ? Number.POSITIVE_INFINITY : clock.now().getTime() - last.endedAtMs
    if (last !== undefined && ageMs >= 0 && ageMs < readinessAgeMsMax) return last.result
    running ??= run().finally(() => {
      running = undefined
    })
    const result = await running
    last = { result, endedAtMs: clock.now().getTime() }
    return result
  }
}

const todoOf = {
  behind: 'The database is a copy without the latest changes. Run: purser admin restored',
  unknown: 'The marks of the witness cannot be read, beside the files or in WITNESS_DIR.',
} as const

/** Longest that readiness waits, so that a probe with a short timeout gets a 503 and not silence. */
const readinessMsMax = 4_000

async function readinessWithin(
  deps: Pick<Deps, 'db' | 'log' | 'lookUpKey' | 'readinessDetails' | 'witness'>,
): Promise<RawResponse> {
  const late = Promise.withResolvers<RawResponse>()
  const timer = setTimeout(() => {
    deps.log.warn('not ready: the database does not respond in time')
    late.resolve(unavailable())
  }, readinessMsMax)
  try {
    return await Promise.race([readiness(deps), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

function unavailable(): RawResponse {
  return json({ status: 'not-ready', database: 'unavailable', migrations: 'unknown' }, 503)
}

async function readiness(
  deps: Pick<Deps, 'db' | 'log' | 'lookUpKey' | 'readinessDetails' | 'witness'>,
): Promise<RawResponse> {
  try {
    if (await isMigrated(deps.db)) {
      await deps.lookUpKey?.()
      if (!(await takesWrites(deps.db)))
        return json({ status: 'not-ready', database: 'read-only', migrations: 'ok' }, 503)
      const witness = await deps.witness.status()
      if (witness !== 'current')
        return json({ status: 'not-ready', database: witness, migrations: 'ok', todo: todoOf[witness] }, 503)
      const details = await deps.readinessDetails?.()
      return json({ status: 'ready', database: 'ok', migrations: 'ok', ...details })
    }
    return json({ status: 'not-ready', database: 'ok', migrations: 'behind' }, 503)
  } catch (error) {
    deps.log.warn({ err: error }, 'not ready: the database does not respond')
    return unavailable()
  }
}
