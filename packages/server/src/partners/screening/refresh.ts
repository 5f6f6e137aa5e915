import { createReadStream } from 'node:fs'
import { instantOf } from '../../platform/clock.ts'
import type { Deps } from '../../platform/ctx.ts'
import { type Outbound, OutboundError } from '../../platform/outbound.ts'
import { dateList } from './dating.ts'
import { findRefresh, lockLists, upsertRefresh } from './list-store.ts'
import { type Taken, takeList } from './lists.ts'
import { readList } from './read-list.ts'
import { ListRefused } from './sanctions-list.ts'

const everyMs = 86_400_000
const retryMs = 3_600_000
const limits = { timeoutMs: 900_000, idleMs: 30_000, bytesMax: 512 * 1_048_576 }

/** Source of a list. A file is as fresh as its own date or the operator's `asOf` (`YYYY-MM-DD`). */
export type ListSource = { readonly url: string } | { readonly file: string }

export interface RefreshOptions {
  readonly asOf?: string | undefined
  readonly acceptCount?: number | undefined
}

export interface Refreshed extends Taken {
  readonly malformed: number
}

/**
 * Reads a list and replaces the current one, or throws `ListRefused` and changes nothing. Reading an unchanged list again only extends its
 * validity.
 */
export async function refreshList(
  deps: Pick<Deps, 'db' | 'clock'> & { readonly outbound: Outbound },
  place: ListSource,
  { asOf, acceptCount }: RefreshOptions = {},
): Promise<Refreshed> {
  const opened = await openSource(deps.outbound, place)
  const list = await readList(opened.body).catch(asRefusal)
  const origin = { now: deps.clock.now(), isLive: opened.isLive, lastModified: opened.lastModified, vouchedDate: asOf }
  const source = 'url' in place ? `${list.format} from ${new URL(place.url).host}` : `${list.format} from a file`
  const next = { ...dateList(list, origin), source, addresses: list.addresses }
  return { ...(await takeList(deps, next, acceptCount)), malformed: list.malformed }
}

async function openSource(outbound: Outbound, place: ListSource) {
  if ('file' in place) return { body: createReadStream(place.file), lastModified: undefined, isLive: false }
  const { body, lastModified } = await outbound.download(place.url, limits).catch(asRefusal)
  return { body, lastModified, isLive: true }
}

function asRefusal(error: unknown): never {
  if (error instanceof OutboundError)
    throw new ListRefused(
      error.kind === 'too-large' ? 'too-large' : 'unreachable',
      `the list could not be fetched: ${error.kind}`,
      error,
    )
  if (error instanceof Error && 'code' in error && typeof error.code === 'string' && !(error instanceof ListRefused))
    throw new ListRefused('unreachable', `the file could not be read: ${error.code}`, error)
  throw error
}

/** Refreshes once a day, and every hour while that fails. The attempt is recorded first, under a lock, so that only one process makes it. */
export async function refreshWhenDue(
  deps: Pick<Deps, 'db' | 'clock' | 'log'> & { readonly outbound: Outbound },
  url: string,
): Promise<void> {
  const now = deps.clock.now()
  const failures = await deps.db.tx(async (tx) => {
    await lockLists(tx)
    const last = await findRefresh(tx)
    const waitMs = last === undefined ? 0 : last.failures === 0 ? everyMs : retryMs
    if (last !== undefined && now.getTime() < last.attemptedAt.getTime() + waitMs) return undefined
    const tried = {
      attemptedAt: now,
      failures: (last?.failures ?? 0) + 1,
      lastError: 'in progress, or interrupted',
    }
    await upsertRefresh(tx, tried)
    return tried.failures
  })
  if (failures === undefined) return
  try {
    const { list, isChanged, malformed } = await refreshList(deps, { url })
    await upsertRefresh(deps.db, { attemptedAt: now, failures: 0, lastError: null })
    const { version, listDate, addressCount } = list
    deps.log.info({ version: String(version), listDate, addressCount, isChanged }, 'the sanctions list was refreshed')
    if (malformed > 0) deps.log.warn({ malformed }, 'the sanctions list has malformed addresses')
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    await upsertRefresh(deps.db, { attemptedAt: now, failures, lastError: reason.slice(0, 500) })
    deps.log.error(
      { err: error, failures, again: instantOf(now.getTime() + retryMs) },
      'the sanctions list could not be refreshed; the current one stays',
    )
  }
}
