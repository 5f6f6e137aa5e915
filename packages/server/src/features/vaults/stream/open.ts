import { instantOf } from '../../../platform/clock.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import { Reply } from '../../../platform/operation.ts'
import { fail as failVault } from '../errors.ts'
import { accessEndsAt } from '../tokens/index.ts'
import type { VaultId } from '../vault.ts'
import { fail } from './errors.ts'
import type { Right } from './event-stream.ts'
import { openingOf } from './frame.ts'
import type { StreamQuery } from './schema.ts'
import { findStart, type Since } from './store.ts'

/** How long a stream lasts whose right has no end of its own: a used ticket's. As long as the longest vault token. */
const ticketStreamMs = 24 * 60 * 60 * 1_000

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  // A proxy that compresses or gathers what it passes on would hold events back.
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

/**
 * Opens a vault's stream: what happened strictly after the event that the client has seen, or after an instant, or nothing of
 * the past; then what happens. 204 where the vault is sealed and nothing is left to tell, which stops a standard client.
 */
export async function openStream(
  ctx: Ctx,
  vaultId: VaultId,
  asked: { readonly query: StreamQuery; readonly lastEventId: string | undefined },
): Promise<Reply> {
  const { tenant, vaultStreams, db, clock } = ctx
  const start = await findStart(db, tenant, { vaultId, now: clock.now() }, sinceOf(asked))
  if (start === undefined) throw failVault('vault-not-found')
  if (start.sequence === null) throw fail('event-not-found')
  if (start.sealedAt !== null && start.sequence >= start.eventCount) return new Reply(204, undefined)
  vaultStreams.refuseIfFull(tenant.organisationId)
  const opening = { tenant, vaultId, right: await rightOf(ctx), after: start.sequence }
  return new Reply(200, vaultStreams.answer(opening, start.eventCount, openingOf(start.eventId ?? undefined)), headers)
}

/** A client that comes back by itself sends the header, and the address it was first given: the header is the newer. */
function sinceOf({
  query,
  lastEventId,
}: {
  readonly query: StreamQuery
  readonly lastEventId: string | undefined
}): Since {
  const eventId = lastEventId || query.lastEventId
  if (eventId) return { eventId }
  return query.from === undefined ? 'now' : { instant: query.from }
}

async function rightOf(ctx: Ctx): Promise<Right> {
  const { actor, clock } = ctx
  if (actor.kind === 'api-key') return { kind: 'api-key', id: actor.apiKeyId }
  const lapsesAt = (await accessEndsAt(ctx)) ?? instantOf(clock.now().getTime() + ticketStreamMs)
  return { kind: 'guest', lapsesAt }
}
