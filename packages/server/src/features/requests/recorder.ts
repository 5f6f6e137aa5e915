import { instantOf } from '../../platform/clock.ts'
import { actorId } from '../../platform/ctx.ts'
import type { CompletedRequest } from '../../platform/http/http-options.ts'
import { isId } from '../../platform/ids.ts'
import { type RecurringTask, repeatWhile } from '../../platform/recurring-task.ts'
import { mayTake } from '../../platform/share.ts'
import type { Deps } from './ports.ts'
import { deleteBeyond, deleteOldRequests, insertRequests, type NewRequest } from './store.ts'

export interface RequestLogLimits {
  /** Rows that are stored for each organisation and environment. */
  readonly rowsMax: number
  /** Requests of all callers, and of organisations that share a free plan or of one other, that wait to be written. Further ones are dropped. */
  readonly waitingMax: number
  readonly waitingOwnMax: number
  /** Milliseconds for which requests are collected before they are written together. */
  readonly writeMs: number
}

const limitsDefault: RequestLogLimits = { rowsMax: 5_000, waitingMax: 5_000, waitingOwnMax: 500, writeMs: 1_000 }

const insertRowsMax = 1_000
const trimTenantsMax = 100
/** Tenants whose written rows are counted. */
const countedTenantsMax = 10_000

export interface RequestLog {
  /** Records a request; never throws and waits for nothing. */
  record(answered: CompletedRequest): void
  /** Writes the records that are not written yet. */
  stop(): Promise<void>
}

/**
 * Writes the requests of identified callers to the request log, about once a second and in batches, so that no request waits for its own
 * record. What exceeds the share of the waiting slots that an owner has (`Caller.shareOwner`), and what the database refuses, is dropped and counted in
 * `purser_request_log_dropped`. So are requests beyond the rate limit, except one of each caller in each batch: they would crowd out the others. The oldest rows of an organisation are deleted when it has written a tenth of its limit, by each process.
 */
export function startRequestLog(
  deps: Pick<Deps, 'db' | 'clock' | 'log' | 'metrics'>,
  limits: Partial<RequestLogLimits> = {},
): RequestLog {
  const { rowsMax, waitingMax, waitingOwnMax, writeMs } = { ...limitsDefault, ...limits }
  const { db, clock, log, metrics } = deps
  const dropped = metrics.gauge('purser_request_log_dropped', 'Requests left out of the request log since the start.')
  const trim = createTrim(db, rowsMax)
  let waiting: NewRequest[] = []
  let waitingByOwner = new Map<string, number>()
  let limitedCallers = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined

  const schedule = (): void => {
    if (timer !== undefined || writing !== undefined || waiting.length === 0) return
    timer = setTimeout(() => void write(), writeMs).unref()
  }
  const write = (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    writing ??= writeWaiting().finally(() => {
      writing = undefined
      schedule()
    })
    return writing
  }
  const writeWaiting = async (): Promise<void> => {
    const rows = waiting
    waiting = []
    waitingByOwner = new Map()
    limitedCallers = new Set()
    let written = 0
    try {
      for (; written < rows.length; written += insertRowsMax) {
        const batch = rows.slice(written, written + insertRowsMax)
        await insertRequests(db, batch)
        await trim(batch)
      }
    } catch (err) {
      dropped.inc(Math.max(0, rows.length - written))
      log.warn({ err }, 'requests were left out of the request log')
    }
  }
  return {
    record(answered) {
      if (!isKept(answered)) return
      const { shareOwner, actor } = answered.caller
      const isLimited = answered.code === 'rate-limit-exceeded'
      const own = waitingByOwner.get(shareOwner) ?? 0
      if (own >= waitingOwnMax || !mayTake({ own, taken: waiting.length, max: waitingMax })) return dropped.inc()
      if (isLimited && limitedCallers.has(actorId(actor))) return dropped.inc()
      if (isLimited) limitedCallers.add(actorId(actor))
      waitingByOwner.set(shareOwner, own + 1)
      waiting.push(rowOf(answered, clock.now()))
      schedule()
    },
    async stop() {
      await writing
      await write()
      clearTimeout(timer)
    },
  }
}

/** Creates the function that deletes the oldest rows of the tenants that wrote enough since the last time, or whose count is unknown. */
function createTrim(db: Deps['db'], rowsMax: number): (batch: readonly NewRequest[]) => Promise<void> {
  const writtenByTenant = new Map<string, number>()
  return async (batch) => {
    const due: NewRequest[] = []
    for (const [tenant, own] of Map.groupBy(
      batch,
      ({ organisationId, environment }) => `${organisationId} ${environment}`,
    )) {
      const count = (writtenByTenant.get(tenant) ?? rowsMax) + own.length
      const isDue = count >= rowsMax / 10
      writtenByTenant.delete(tenant)
      writtenByTenant.set(tenant, isDue ? 0 : count)
      if (isDue) due.push(...own.slice(0, 1))
    }
    for (const tenant of writtenByTenant.keys()) {
      if (writtenByTenant.size <= countedTenantsMax) break
      writtenByTenant.delete(tenant)
    }
    for (let at = 0; at < due.length; at += trimTenantsMax)
      await deleteBeyond(db, due.slice(at, at + trimTenantsMax), rowsMax)
  }
}

/** Reads by people in the dashboard and requests of guests are not recorded, because they would crowd out the organisation's own requests. */
function isKept({ caller: { tenant, actor }, method }: CompletedRequest): boolean {
  if (actor.kind === 'api-key') return true
  return actor.kind === 'person' && method !== 'GET' && isId('org', tenant.organisationId)
}

function rowOf(answered: CompletedRequest, now: Date): NewRequest {
  const { requestId, caller, method, route, status, code } = answered
  const { tenant, actor } = caller
  const durationMs = Math.min(Math.max(0, Math.round(answered.durationMs)), 2 ** 31 - 1)
  return {
    ...tenant,
    id: requestId,
    method,
    route,
    status,
    durationMs,
    apiKeyId: actor.kind === 'api-key' ? actor.apiKeyId : null,
    accountId: actor.kind === 'person' ? actor.accountId : null,
    code,
    createdAt: instantOf(now.getTime() - durationMs),
  }
}

const keptMs = 7 * 86_400_000
const batchRowsMax = 5_000

/** Deletes requests after seven days, in batches. Idempotent. */
export const expireRequests: RecurringTask<Deps> = {
  name: 'requests.sweep',
  everyMs: 600_000,
  run: async (ctx) => {
    const before = instantOf(ctx.clock.now().getTime() - keptMs)
    await repeatWhile(ctx, async () => (await deleteOldRequests(ctx.db, before, batchRowsMax)) === batchRowsMax)
  },
}
