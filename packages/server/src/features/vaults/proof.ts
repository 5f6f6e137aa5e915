import { itemProof } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import { keyIdOf } from '../../platform/http/key-set.ts'
import { fail } from './errors.ts'
import type { Proof } from './schema.ts'
import { findProof, findVault } from './store.ts'
import type { VaultId } from './vault.ts'

/** The proof of a sealed vault, or of one item of it without the others. Anybody checks it offline with the service's public key. */
export async function getProof(ctx: Ctx, vaultId: VaultId, itemId: string | undefined): Promise<Proof> {
  const vault = await findVault(ctx.db, ctx.tenant, vaultId, ctx.clock.now())
  if (vault === undefined) throw fail('vault-not-found')
  const proof = vault.sealedAt === null ? undefined : await findProof(ctx.db, ctx.tenant, vaultId)
  if (proof === undefined) throw fail('vault-not-sealed')
  if (itemId === undefined) return { ...proof, keys: keysOf(ctx) }
  const inclusion = itemProof(proof, itemId)
  if (inclusion === undefined) throw fail('item-not-found')
  return { ...inclusion, path: [...inclusion.path] }
}

function keysOf({ serviceSeal, baseUrl }: Ctx) {
  return serviceSeal.publicKeys.map(({ kid, x }) => ({ kid: keyIdOf(baseUrl, kid), x }))
}
