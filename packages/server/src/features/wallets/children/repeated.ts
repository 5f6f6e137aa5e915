import { z } from 'zod'
import { MasterWalletParams } from '../managed/schema.ts'
import type { Ctx } from '../ports.ts'
import { shownChildAddress } from './children.ts'
import type { ChildAddress } from './schema.ts'
import { listChildrenBetween } from './store.ts'

const Made = z.array(z.object({ derivationPath: z.string() }))

/**
 * Returns the key with which `childrenAt` finds the children that one request derived: their wallet, and their first
 * and last index.
 */
export function childrenPlace(answer: unknown, params: unknown): string {
  const made = Made.parse(answer)
  const [first, last] = [made[0], made.at(-1)].map((child) => child?.derivationPath.split('/').at(-1))
  return `${MasterWalletParams.parse(params).id}/${first}/${last}`
}

/** Returns the children in the order of their indices. */
export async function childrenAt(ctx: Ctx, place: string): Promise<ChildAddress[]> {
  const [walletId, first, last] = place.split('/')
  const { id } = MasterWalletParams.parse({ id: walletId })
  const children = await listChildrenBetween(ctx.db, ctx.tenant, id, { first: Number(first), last: Number(last) })
  return children.map(shownChildAddress)
}
