import { type DevChain, sendFromDevAccount, startChain } from '@purser/devnet'
import { encodeTransferWithAuthorization } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import type { Chain } from '../../src/chain/port.ts'
import { voidUnsettled } from '../../src/features/payments/index.ts'
import { relays } from '../../src/features/relayer/index.ts'
import { AuthorizationPayload } from '../../src/features/relayer/port.ts'
import { signSweeps } from '../../src/features/wallets/sweep/relay.ts'
import { sql } from '../../src/platform/db/db.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { aFamily, sweep } from '../sweep-stage.ts'
import { network } from '../wallet-payment-stage.ts'
import { aPayer, aWorld, codeOf, type Org, type V2Payload, type World } from '../world.ts'

/** A process that only serves requests: nothing is broadcast unless a test does it. */
let chain: DevChain
let world: World
let org: Org

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], config: { role: 'api', settleWaitMs: 200 } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const price = '1'

function priced(walletId: string) {
  return { walletId, resource: 'https://api.example.com/weather', price }
}

interface Verified {
  readonly paymentId: string
  readonly settlementToken: unknown
  /** What anybody can send to the token. */
  readonly call: `0x${string}`
}

/** A payment of a new payer for which settlement is not requested. */
async function verified(own: Org): Promise<Verified> {
  const wallet = await world.wallet(own)
  const challenge = await world.call(own.testKey, 'POST', '/payments/challenge', priced(wallet.id))
  let call: Verified['call'] = '0x'
  const after = ({ payload: { authorization, signature } }: V2Payload): void => {
    const { value, validAfter, validBefore, ...parties } = Signed.parse(authorization)
    const numbers = { value: BigInt(value), validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) }
    call = encodeTransferWithAuthorization(
      { ...parties, ...numbers },
      { kind: 'bytes', signature: Hexadecimal.parse(signature) },
    )
  }
  const credential = await (await aPayer(chain)).credential(challenge, { after })
  const body = { protocol: 'x402', credential, ...priced(wallet.id) }
  const { paymentId, settlementToken } = (await world.call(own.testKey, 'POST', '/payments/verify', body)).body
  return { paymentId: String(paymentId), settlementToken, call }
}

async function statusOf({ paymentId }: Verified): Promise<string> {
  const Row = z.object({ status: z.string() })
  return (await world.database.db.one(Row, sql`select status from payments where id = ${paymentId}`)).status
}

const hourMs = 3_600_000
const Hexadecimal = z.templateLiteral(['0x', z.string()])
const Signed = z.object({
  from: Hexadecimal,
  to: Hexadecimal,
  value: z.string(),
  validAfter: z.string(),
  validBefore: z.string(),
  nonce: Hexadecimal,
})

test('a child’s authorization for a sweep is refused as a payment: its nonce belongs to the sweep', async () => {
  const family = await aFamily(world, org, chain, { count: 1 })
  expect((await sweep(world, org, family)).status).toBe(202)
  await signSweeps.run(systemCtx(world.server.deps))
  const { payload: signed } = await world.database.db.one(
    z.object({ payload: AuthorizationPayload }),
    sql`select payload from relays where purpose = 'wallets.sweeps'`,
  )
  const { from, to, value, validAfter, validBefore, nonce, signature } = signed
  if (signature.kind !== 'ecdsa') throw new Error('a child signs with its key')
  const { body: challenge } = { body: await world.call(org.testKey, 'POST', '/payments/challenge', priced(family.id)) }
  const payer = await aPayer(chain)
  const after = ({ payload }: V2Payload): void => {
    payload.authorization = { from, to, value, validAfter, validBefore, nonce }
    payload.signature = `${signature.r}${signature.s.slice(2)}${signature.v.toString(16)}`
  }
  const credential = await payer.credential(challenge, { after })
  const body = { protocol: 'x402', credential, ...priced(family.id) }
  const response = await world.call(org.testKey, 'POST', '/payments/verify', body)
  expect([response.status, codeOf(response)]).toEqual([409, 'duplicate-payment'])
})

test('a payment whose nonce is queued for another purpose fails when it is to be settled, and the others are sent', async () => {
  const bought = [await verified(org), await verified(org), await verified(org)]
  await relays.enqueue(
    world.database.db,
    'wallets.sweeps',
    sql`
    select 'swp_1 cad_1' as subject_id, network, organisation_id, environment, settlement || jsonb_build_object('token', asset) as payload,
      valid_before, created_at
    from payments where id = ${bought[1]?.paymentId ?? ''}`,
  )
  const answers = await Promise.all(
    bought.map(({ paymentId, settlementToken }) =>
      world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken }),
    ),
  )
  expect(answers.map(({ status, body }) => [status, body.reason])).toEqual([
    [202, undefined],
    [409, 'invalid_exact_evm_nonce_already_used'],
    [202, undefined],
  ])
})

test('a search for a used authorization that takes long delays no void of others and no later turn, and is not begun twice', async () => {
  const [one, other] = [org, await world.organisation()]
  const [used, unused] = [await verified(one), await verified(other)]
  await sendFromDevAccount(chain, chain.tokens.USDC ?? '0x', used.call)

  const { deps } = world.server
  const real = deps.chains.on(network)
  const response = Promise.withResolvers<void>()
  let searches = 0
  const findAuthorizationUse: Chain['findAuthorizationUse'] = async (...search) => {
    searches += 1
    await response.promise
    return real.findAuthorizationUse(...search)
  }
  const slow: Chain = { ...real, findAuthorizationUse }
  const searching: Promise<void>[] = []
  const turn = async (aheadMs: number): Promise<void> => {
    const clock = { now: () => new Date(Date.now() + aheadMs) }
    const ctx = systemCtx({ ...deps, clock, chains: { ...deps.chains, on: () => slow } })
    await voidUnsettled.run(ctx, (search) => searching.push(search))
  }
  await turn(hourMs)
  expect([await statusOf(used), await statusOf(unused)]).toEqual(['verified', 'voided'])
  const later = await verified(other)
  await turn(2 * hourMs)
  expect([await statusOf(used), await statusOf(later), searches]).toEqual(['verified', 'voided', 1])
  response.resolve()
  await Promise.all(searching)
  expect([await statusOf(used), await statusOf(unused)]).toEqual(['settled', 'voided'])
})
