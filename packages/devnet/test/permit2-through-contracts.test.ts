import type { PaymentPayload } from '@x402/core/types'
import { type Address, encodeFunctionData, type Hex, multicall3Abi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { multicall3Address } from '../../protocol/src/index.ts'
import { sql } from '../../server/src/platform/db/db.ts'
import { type Answer, aWorld, type Org, type World } from '../../server/test/world.ts'
import {
  type DevChain,
  exactPermit2ProxyAddress,
  permit2Address,
  sendFromDevAccount,
  startChain,
  tokenBalance,
} from '../src/index.ts'
import {
  authorizedTransferData,
  giveUp,
  Logged,
  nonceOf,
  settleData,
  signedWithNonce,
} from './official-permit2-calls.ts'
import { aPermit2Payer, type Permit2Payer, requirementsOf, usdcOf } from './official-permit2-payers.ts'

let chain: DevChain
let world: World
let org: Org

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

function merchant(): Address {
  return privateKeyToAccount(generatePrivateKey()).address
}

/** A verified payment of 0.01, by Permit2 or by an authorization of the token. */
async function verified(payer: Permit2Payer, payTo: Address, by: 'permit2' | 'eip3009' = 'permit2') {
  const facilitatorAddress = world.server.settlerAddress as Address
  const requirements = requirementsOf(chain, { scheme: 'exact', amount: '10000', payTo, facilitatorAddress })
  const paymentRequirements = { ...requirements, extra: { ...requirements.extra, assetTransferMethod: by } }
  const payload = await payer.sign(paymentRequirements)
  const body = { x402Version: 2, paymentPayload: payload, paymentRequirements }
  expect((await world.call(org.testKey, 'POST', '/facilitator/verify', body)).body).toMatchObject({ isValid: true })
  const settle = (): Promise<Answer> => world.call(org.testKey, 'POST', '/facilitator/settle', body)
  return { payload, paymentRequirements, settle }
}

interface Call {
  readonly target: Address
  readonly data: Hex
  readonly mayFail?: boolean
}

const settling = (payload: PaymentPayload): Call => ({ target: exactPermit2ProxyAddress, data: settleData(payload) })

/** One transaction of a third party that makes these calls. */
function sendThroughContract(...calls: readonly Call[]): Promise<Hex> {
  const args = [
    calls.map(({ target, data: callData, mayFail = false }) => ({ target, allowFailure: mayFail, callData })),
  ] as const
  const data = encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args })
  return sendFromDevAccount(chain, multicall3Address, data)
}

async function statusesOf(payTo: Address): Promise<readonly (string | null)[][]> {
  const rows = await world.database.db.many(
    Logged,
    sql`select id, status, tx_hash, failure_reason, raw_amount from payments where pay_to = ${payTo} order by status`,
  )
  return rows.map(({ status, txHash }) => [status, txHash])
}

test('a payment that a third party settles through a contract is settled, by that transaction, once', async () => {
  const [payer, payTo] = [await aPermit2Payer(chain), merchant()]
  const { payload, settle } = await verified(payer, payTo)
  const theirs = await sendThroughContract(settling(payload))
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(10_000n)
  expect((await settle()).body).toMatchObject({ success: true, transaction: theirs })
  expect((await settle()).body).toMatchObject({ success: false, transaction: '' })
  expect(await statusesOf(payTo)).toEqual([['settled', theirs]])
})

test('two payments of one price that one transaction settles through a contract are both settled', async () => {
  const [payer, payTo] = [await aPermit2Payer(chain), merchant()]
  const bought = [await verified(payer, payTo), await verified(payer, payTo)]
  const theirs = await sendThroughContract(...bought.map(({ payload }) => settling(payload)))
  await Promise.all(bought.map(({ settle }) => settle()))
  const settled = ['settled', theirs]
  await expect.poll(() => statusesOf(payTo), { timeout: 60_000 }).toEqual([settled, settled])
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(20_000n)
})

test('one settlement through a contract pays for one of two payments, although the calls for both are in its input', async () => {
  const [payer, payTo] = [await aPermit2Payer(chain), merchant()]
  const bought = [await verified(payer, payTo), await verified(payer, payTo)]
  const [unpaid, paid] = bought
  if (unpaid === undefined || paid === undefined) throw new Error('two were bought')
  // The nonce of the first pays another merchant, then the first fails beside the second.
  const requirements = { ...unpaid.paymentRequirements, payTo: merchant(), amount: '1' }
  const other = await signedWithNonce(chain, payer, requirements, nonceOf(unpaid.payload))
  const theirs = await sendThroughContract(
    settling(other),
    { ...settling(unpaid.payload), mayFail: true },
    settling(paid.payload),
  )
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(10_000n)
  await Promise.all(bought.map(({ settle }) => settle()))
  const ended = [
    ['settled', theirs],
    ['settlement_failed', null],
  ]
  await expect.poll(() => statusesOf(payTo), { timeout: 60_000 }).toEqual(ended)
})

test('a payment whose nonce its payer invalidates is not paid by another’s settlement through a contract', async () => {
  const [payer, payTo] = [await aPermit2Payer(chain), merchant()]
  const [unpaid, paid] = [await verified(payer, payTo), await verified(payer, payTo)]
  await payer.send(permit2Address, giveUp(unpaid.payload))
  await sendThroughContract(settling(paid.payload))
  expect((await unpaid.settle()).body).toMatchObject({ success: false, errorReason: 'permit2_invalid_nonce' })
  expect((await paid.settle()).body).toMatchObject({ success: true })
})

test('the transfer of an authorization pays for no permit, although the proxy logs a settlement of another token behind it', async () => {
  const [payer, payTo] = [await aPermit2Payer(chain), merchant()]
  const [permit, authorization] = [await verified(payer, payTo), await verified(payer, payTo, 'eip3009')]
  // An address without code moves nothing and logs nothing, and the permit over it spends the nonce.
  const requirements = { ...permit.paymentRequirements, asset: merchant() }
  const empty = await signedWithNonce(chain, payer, requirements, nonceOf(permit.payload))
  const theirs = await sendThroughContract(
    { target: usdcOf(chain), data: authorizedTransferData(authorization.payload) },
    settling(empty),
    { ...settling(permit.payload), mayFail: true },
  )
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(10_000n)
  await Promise.all([permit, authorization].map(({ settle }) => settle()))
  const ended = [
    ['settled', theirs],
    ['settlement_failed', null],
  ]
  await expect.poll(() => statusesOf(payTo), { timeout: 60_000 }).toEqual(ended)
})
