import { z } from 'zod'
import { shareOwnerOf } from '../../../platform/ctx.ts'
import { eventStreamHeaders, openingOf } from '../../../platform/event-streams/response.ts'
import { Reply } from '../../../platform/operation.ts'
import { requireReader } from '../../../platform/reader.ts'
import { InstantInput, text } from '../../../platform/wire.ts'
import { fail as failVault } from '../errors.ts'
import type { Ctx } from '../ports.ts'
import type { VaultId } from '../schema.ts'
import { accessEndsAt } from '../tokens/index.ts'
import { fail } from './errors.ts'
import type { Right } from './event-stream.ts'
import { findStart, type Since } from './store.ts'

/**
 * Opens a vault's stream: past events strictly after the client's last event or after an instant; none if it names neither, and all if the vault
 * is sealed; then new events. 204 if the vault is sealed and no event is left to send, which stops a standard client.
 */
export async function openStream(
  ctx: Ctx,
  vaultId: VaultId,
  requested: { readonly query: StreamQuery; readonly lastEventId: string | undefined },
): Promise<Reply> {
  const { tenant, vaultStreams, db, clock, replayCharges: charges } = ctx
  const owner = shareOwnerOf(ctx)
  const start = await findStart(db, tenant, { vaultId, now: clock.now() }, sinceOf(requested))
  if (start === undefined) throw failVault('vault-not-found')
  if (start.sequence === null) throw fail('event-not-found')
  if (start.sealedAt !== null && start.sequence >= start.eventCount) return new Reply(204, undefined)
  const right = await rightOf(ctx)
  vaultStreams.refuseIfFull(owner, tenant.environment)
  const opening = { tenant, owner, vaultId, right, after: start.sequence, charges }
  const response = vaultStreams.respond(opening, start.eventCount, openingOf(start.eventId ?? undefined))
  return new Reply(200, response, eventStreamHeaders)
}

/** A client that reconnects by itself sends the header and its original address: the header is newer. */
function sinceOf({
  query,
  lastEventId,
}: {
  readonly query: StreamQuery
  readonly lastEventId: string | undefined
}): Since {
  const eventId = lastEventId || query.lastEventId
  if (eventId) return { eventId }
  return query.from === undefined ? 'unstated' : { instant: query.from }
}

async function rightOf(ctx: Pick<Ctx, 'actor' | 'clock' | 'db' | 'person' | 'tenant'>): Promise<Right> {
  const reader = requireReader(ctx)
  const expiresAt = await accessEndsAt(ctx)
  if (expiresAt !== null) return { kind: 'guest', reader, expiresAt }
  return { kind: 'reader', reader }
}

export const StreamQuery = z.strictObject({
  from: InstantInput.optional().meta({
    description: 'Begins with the events after that millisecond (ISO 8601).',
  }),
  lastEventId: text(64).optional().meta({
    description: 'As the Last-Event-ID header, which goes before it, for a new stream.',
  }),
  ticket: text(256).optional().meta({
    description: 'In place of a header, for browsers: from `POST /vaults/{id}/tokens` with `kind: "ticket"`.',
  }),
})
export type StreamQuery = z.output<typeof StreamQuery>
