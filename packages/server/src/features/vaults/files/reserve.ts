import type { BlobKey } from '../../../files/index.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { limitError, type Plan, unlimited } from '../../plans/index.ts'
import type { Ctx } from '../ports.ts'
import { lockStorage } from '../quota.ts'
import type { VaultId } from '../schema.ts'
import { tenantSemaphores } from '../semaphores.ts'
import { insertUpload, setReserved, sumReserved } from './store.ts'

/** Bytes reserved at a time for an upload without an announced length. */
const stepBytes = 8 * 2 ** 20
/** Usual size of a form beside its file; a larger form reserves slightly more than its file needs. */
const formBytesUsual = 4_096

/** Most milliseconds of an upload. A longer one is refused, and the sweep abandons it. */
export const uploadMsMax = 3_600_000

/** An upload in progress: how much it may store so far, and the length that it announced. */
export interface Reservation {
  readonly blobKey: BlobKey
  readonly plan: Plan
  readonly bytes: number
  /** Bytes of the whole body, at least those of the file. */
  readonly announced: number | undefined
}

/**
 * Records an upload in a row and reserves storage of the plan for it: all that it announced, or nothing yet. All reservations of
 * a tenant and what is already stored are within the quota together, so that no number of uploads fills the disk. The reservation
 * ends with the row, when the file is bound, abandoned or swept.
 */
export function reserve(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant' | 'upgradeUrl' | 'withSemaphores'>,
  plan: Plan,
  { blobKey, vaultId, announced }: Pick<Reservation, 'announced' | 'blobKey'> & { vaultId: VaultId },
): Promise<Reservation> {
  const wanted = Math.max(0, (announced ?? 0) - formBytesUsual)
  return inTenantTurn(ctx, async (tx) => {
    const bytes = await reserveBytes(tx, ctx, plan, { current: 0, atLeast: Math.max(1, wanted), wanted })
    await insertUpload(tx, ctx.tenant, {
      blobKey,
      vaultId,
      reservedBytes: stored(plan, bytes),
      createdAt: ctx.clock.now(),
    })
    return { blobKey, plan, bytes, announced }
  })
}

/** Yields the content, and stops with the plan's limit error if more arrives than the remaining storage. */
export async function* withinQuota(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant' | 'upgradeUrl' | 'withSemaphores'>,
  reservation: Reservation,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const { plan, announced } = reservation
  let current = reservation.bytes
  let size = 0
  for await (const chunk of content) {
    size += chunk.byteLength
    // Small files take exactly their bytes. The end of a larger one, in many chunks, is reserved at once.
    const tail = current === reservation.bytes ? 0 : formBytesUsual
    // The store refuses a file above the file limit with its own error.
    if (size > current && size <= plan.fileBytes)
      current = await grow(ctx, reservation, {
        current,
        atLeast: size,
        wanted: announced === undefined ? size + stepBytes : Math.min(size + tail, announced),
      })
    yield chunk
  }
}

/** Yields the content of an upload, and stops when more arrives after the longest time of an upload. */
export async function* inTime(
  { clock }: Pick<Ctx, 'clock'>,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const end = clock.now().getTime() + uploadMsMax
  for await (const chunk of content) {
    if (clock.now().getTime() > end) throw failPlatform('request-timeout')
    yield chunk
  }
}

interface ReservationRequest {
  readonly current: number
  readonly atLeast: number
  readonly wanted: number
}

function grow(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant' | 'upgradeUrl' | 'withSemaphores'>,
  { blobKey, plan }: Reservation,
  request: ReservationRequest,
): Promise<number> {
  return inTenantTurn(ctx, async (tx) => {
    const bytes = await reserveBytes(tx, ctx, plan, request)
    // It was swept in the meantime because it took too long.
    if (!(await setReserved(tx, ctx.tenant, blobKey, stored(plan, bytes)))) throw failPlatform('request-timeout')
    return bytes
  })
}

/** Returns as many of the wanted bytes as remain; the file limit if the plan has no storage limit. Locks the counter. */
async function reserveBytes(
  tx: Tx,
  ctx: Pick<Ctx, 'clock' | 'tenant' | 'upgradeUrl'>,
  plan: Plan,
  { current, atLeast, wanted }: ReservationRequest,
): Promise<number> {
  const limit = plan.storageBytes
  if (limit === unlimited) return plan.fileBytes
  const used = await lockStorage(tx, ctx)
  const remaining = limit - used - ((await sumReserved(tx, ctx.tenant)) - current)
  if (remaining < atLeast)
    throw limitError(ctx, 'storage-quota-exceeded', { limit, current: Math.min(limit, limit - remaining) })
  return Math.min(wanted, remaining)
}

/** Runs in the tenant's turn, because the work locks its counter. */
function inTenantTurn<T>(ctx: Pick<Ctx, 'db' | 'tenant' | 'withSemaphores'>, work: (tx: Tx) => Promise<T>): Promise<T> {
  return ctx.withSemaphores(tenantSemaphores(ctx.tenant), () => ctx.db.tx(work))
}

/** Without a limit nothing needs to be reserved. */
function stored(plan: Plan, bytes: number): number {
  return plan.storageBytes === unlimited ? 0 : bytes
}
