import { type DevChain, fundToken } from '@purser/devnet'
import { type Address, createPublicClient, http } from 'viem'
import { z } from 'zod'
import { sql } from '../src/platform/db/db.ts'
import type { Answer, Org, World } from './world.ts'

export interface Swept {
  readonly id: string
  readonly path: string
  readonly address: Address
  readonly children: readonly { readonly id: string; readonly address: Address }[]
}

const masters = '/wallet-infra/master-wallets'

interface Place {
  readonly chain: string
  readonly token: string
}
const onBase: Place = { chain: 'base', token: 'USDC' }

/** A master with children that each have this much of the token, on Base and of USDC by default. */
export async function aFamily(
  world: World,
  org: Org,
  chain: DevChain,
  {
    count,
    rawAmount = 1_000_000n,
    of = onBase,
  }: { readonly count: number; readonly rawAmount?: bigint; readonly of?: Place },
): Promise<Swept> {
  const { body } = await world.call(org.testKey, 'POST', masters, { chain: of.chain, supportedTokens: [of.token] })
  const path = `${masters}/${body.id}`
  const { list } = await world.call(org.testKey, 'POST', `${path}/child-addresses`, { count })
  const children = list.map((child) => ({ id: String(child.id), address: child.address as Address }))
  if (rawAmount > 0n) for (const { address } of children) await fundToken(chain, of.token, address, rawAmount)
  return { id: String(body.id), path, address: body.address as Address, children }
}

export function sweep(
  world: World,
  org: Org,
  family: Swept,
  body: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  return world.call(org.testKey, 'POST', `${family.path}/sweep`, { token: 'USDC', ...body }, headers)
}

const Children = z.array(
  z.object({
    childAddressId: z.string(),
    amount: z.string(),
    status: z.string(),
    txHash: z.string().nullable(),
    reason: z.string().nullable(),
  }),
)

export async function childrenOf(world: World, org: Org, family: Swept, sweepId: unknown) {
  const { body } = await world.call(org.testKey, 'GET', `${family.path}/sweeps/${sweepId}`)
  return { status: String(body.status), children: Children.parse(body.children) }
}

export async function ethOf(chain: DevChain, address: Address): Promise<bigint> {
  return createPublicClient({ transport: http(chain.rpcUrl) }).getBalance({ address })
}

/** The number of sweeps' lane transactions, which the operator pays for. */
export async function sweepTransactions(world: World): Promise<bigint> {
  const statement = sql`select count(*) as count from chain_transactions where purpose = 'relays'`
  return (await world.database.db.one(z.object({ count: z.bigint() }), statement)).count
}
