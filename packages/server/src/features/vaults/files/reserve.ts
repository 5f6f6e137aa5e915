import type { BlobKey } from '../../../files/index.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { limitError, type Plan, unlimited } from '../../plans/index.ts'
import { holdStorage } from '../quota.ts'
import { tenantTurns } from '../turns.ts'
import type { VaultId } from '../vault.ts'
import { insertUpload, setReserved, sumReserved } from './store.ts'

/** What is promised at a time where nobody said how much will come. */
const stepBytes = 8 * 2 ** 20
/** What a form has beside its file; one that has more is promised a little more than its file needs. */
const formBytesUsual = 4_096

/** An upload under way: how much it may store for the moment, and whether it said how much it will be. */
export interface Reservation {
  readonly blobKey: BlobKey
  readonly plan: Plan
  readonly bytes: number
  readonly isAnnounced: boolean
}

/**
 * Names an upload in a row and promises it room in the plan's storage: all that it announced, or nothing yet. What is promised to
 * all of a tenant's uploads and what is stored already are within the quota together, so that no number of them fills the disk.
 * The promise ends with the row, when the file is bound, given up or swept.
 */
export function reserve(
  ctx: Ctx,
  plan: Plan,
  { blobKey, vaultId, announced }: Pick<Reservation, 'blobKey'> & { vaultId: VaultId; announced: number | undefined },
): Promise<Reservation> {
  const wanted = Math.max(0, (announced ?? 0) - formBytesUsual)
  return alone(ctx, async (tx) => {
    const bytes = await promise(tx, ctx, plan, { held: 0, atLeast: Math.max(1, wanted), wanted })
    await insertUpload(tx, ctx.tenant, {
      blobKey,
      vaultId,
      reservedBytes: stored(plan, bytes),
      createdAt: ctx.clock.now(),
    })
    return { blobKey, plan, bytes, isAnnounced: announced !== undefined }
  })
}

/** The same content, stopped with the document's limit error where more comes than there is room for. */
export async function* withinQuota(
  ctx: Ctx,
  reservation: Reservation,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const { plan, isAnnounced } = reservation
  let held = reservation.bytes
  let size = 0
  for await (const chunk of content) {
    size += chunk.byteLength
    // One that is larger than a file may be is refused by the store, in its own words.
    if (size > held && size <= plan.fileBytes)
      held = await grow(ctx, reservation, { held, atLeast: size, wanted: isAnnounced ? size : size + stepBytes })
    yield chunk
  }
}

interface Wish {
  readonly held: number
  readonly atLeast: number
  readonly wanted: number
}

function grow(ctx: Ctx, { blobKey, plan }: Reservation, wish: Wish): Promise<number> {
  return alone(ctx, async (tx) => {
    const bytes = await promise(tx, ctx, plan, wish)
    // Swept meanwhile, as one that takes too long.
    if (!(await setReserved(tx, ctx.tenant, blobKey, stored(plan, bytes)))) throw failPlatform('request-timeout')
    return bytes
  })
}

/** As much of what is wanted as there is room for; all that a file may have where the plan has no limit. Holds the counter. */
async function promise(tx: Tx, ctx: Ctx, plan: Plan, { held, atLeast, wanted }: Wish): Promise<number> {
  const limit = plan.storageBytes
  if (limit === unlimited) return plan.fileBytes
  const used = await holdStorage(tx, ctx)
  const room = limit - used - ((await sumReserved(tx, ctx.tenant)) - held)
  if (room < atLeast) throw limitError(ctx, 'storage-quota-exceeded', limit, Math.min(limit, limit - room))
  return Math.min(wanted, room)
}

/** In the tenant's turn, since its counter is held. */
function alone<T>(ctx: Ctx, work: (tx: Tx) => Promise<T>): Promise<T> {
  return ctx.turns(tenantTurns(ctx.tenant), () => ctx.db.tx(work))
}

/** Where there is no limit nothing needs to be kept. */
function stored(plan: Plan, bytes: number): number {
  return plan.storageBytes === unlimited ? 0 : bytes
}
