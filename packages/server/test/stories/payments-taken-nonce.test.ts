import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { relays } from '../../src/features/relayer/index.ts'
import { AuthorizationPayload } from '../../src/features/relayer/payload.ts'
import { signSweeps } from '../../src/features/wallets/sweep/sign.ts'
import { sql } from '../../src/platform/db/db.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { aFamily, sweep } from '../sweep-stage.ts'
import { aPayer, aWorld, codeOf, type Org, type V2Payload, type World } from '../world.ts'

/** A process that only answers: nothing is sent unless a test does it. */
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
  const answer = await world.call(org.testKey, 'POST', '/payments/verify', body)
  expect([answer.status, codeOf(answer)]).toEqual([409, 'duplicate-payment'])
})

test('a payment whose nonce is queued for another purpose fails when it is to be settled, and the others are sent', async () => {
  const wallet = await world.wallet(org)
  const bought = []
  for (let count = 0; count < 3; count += 1) {
    const payer = await aPayer(chain)
    const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', priced(wallet.id))
    const credential = await payer.credential(challenge)
    const body = { protocol: 'x402', credential, ...priced(wallet.id) }
    const { paymentId, settlementToken } = (await world.call(org.testKey, 'POST', '/payments/verify', body)).body
    bought.push({ paymentId: String(paymentId), settlementToken })
  }
  await relays.enqueue(
    world.database.db,
    'wallets.sweeps',
    sql`
    select 'swp_1 cad_1' as subject_id, network, organisation_id, environment, settlement || jsonb_build_object('token', asset) as payload,
      valid_before, created_at
    from payments where id = ${bought[1]?.paymentId ?? ''}`,
  )
  const answers = await Promise.all(bought.map((one) => world.call(org.testKey, 'POST', '/payments/settle', one)))
  expect(answers.map(({ status, body }) => [status, body.reason])).toEqual([
    [202, undefined],
    [409, 'invalid_exact_evm_nonce_already_used'],
    [202, undefined],
  ])
})
