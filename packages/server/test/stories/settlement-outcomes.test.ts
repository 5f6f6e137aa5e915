import { type DevChain, sendFromDevAccount, startChain, tokenBalance } from '@purser/devnet'
import { multicall3Address } from '@purser/protocol'
import { type Address, encodeFunctionData, type Hex, multicall3Abi, parseAbi } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { auditedOf } from '../audited.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type Payer, type V2Payload, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let wallet: { id: string; address: Address }
let usdc: Address

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  usdc = chain.tokens.USDC ?? '0x'
  world = await aWorld({ chains: [chain], config: { settleWaitMs: 20_000 } })
  org = await world.organisation()
  wallet = await world.wallet(org)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const token = parseAbi([
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
  'function cancelAuthorization(address,bytes32,bytes)',
  'function blacklist(address)',
])
const authorizationTypes = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
}
const Hexadecimal = z.templateLiteral(['0x', z.string()])
const Signed = z.object({
  signature: Hexadecimal,
  authorization: z.object({
    from: Hexadecimal,
    to: Hexadecimal,
    value: z.string(),
    validAfter: z.string(),
    validBefore: z.string(),
    nonce: Hexadecimal,
  }),
})

/** A verified payment, and its signed payload. */
async function verified(payer: Payer): Promise<{ response: Answer; signed: z.output<typeof Signed> }> {
  let payload: V2Payload | undefined
  const resource = 'https://api.example.com/weather'
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', requested)
  const after = (made: V2Payload): void => {
    payload = made
  }
  const credential = await payer.credential(challenge, { after })
  const response = await world.call(org.testKey, 'POST', '/payments/verify', {
    protocol: 'x402',
    credential,
    ...requested,
  })
  expect(response.status).toBe(200)
  return { response, signed: Signed.parse(payload?.payload) }
}

function settle({ body: { paymentId, settlementToken } }: Answer): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
}

async function eventsOf({ body }: Answer): Promise<string[]> {
  const rows = await world.database.db.many(
    z.object({ type: z.string() }),
    sql`select type from events where payload->>'paymentId' = ${String(body.paymentId)} order by id`,
  )
  return rows.map(({ type }) => type)
}

/** The call that executes a signed authorization. */
function transferOf({ authorization, signature }: z.output<typeof Signed>): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature] as const
  return encodeFunctionData({ abi: token, functionName: 'transferWithAuthorization', args })
}

function send(data: Hex): Promise<Hex> {
  return sendFromDevAccount(chain, usdc, data)
}

test('a payment that somebody else broadcasts after it was verified is settled, by their transaction', async () => {
  const { response, signed } = await verified(await aPayer(chain))
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const hash = await send(transferOf(signed))

  const settled = await settle(response)
  expect([settled.status, settled.body.txHash]).toEqual([200, hash])
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)
  expect(await eventsOf(response)).toEqual(['payment.received', 'payment.settled'])
})

test('a payment that its payer cancels after verify fails with that reason, and stays failed', async () => {
  const payer = await aPayer(chain)
  const { response, signed } = await verified(payer)
  const { from, nonce } = signed.authorization
  const signature = await payer.account.signTypedData({
    domain: { name: 'USDC', version: '2', chainId: chain.chainId, verifyingContract: usdc },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: from, nonce },
  })
  await send(encodeFunctionData({ abi: token, functionName: 'cancelAuthorization', args: [from, nonce, signature] }))
  await expectFailed(response, 'invalid_exact_evm_nonce_already_used')
})

test('one transfer pays for one payment: a nonce that another authorization used beside it moved nothing', async () => {
  const payer = await aPayer(chain)
  const [unpaid, paid] = [await verified(payer), await verified(payer)]
  const { from, nonce, validAfter, validBefore } = unpaid.signed.authorization
  const empty = { from, to: from, value: '0', validAfter, validBefore, nonce }
  const signature = await payer.account.signTypedData({
    domain: { name: 'USDC', version: '2', chainId: chain.chainId, verifyingContract: usdc },
    types: authorizationTypes,
    primaryType: 'TransferWithAuthorization',
    message: { ...empty, value: 0n, validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) },
  })
  const calls = [{ authorization: empty, signature }, paid.signed].map((one) => {
    return { target: usdc, allowFailure: false, callData: transferOf(one) }
  })
  const data = encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args: [calls] })
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const hash = await sendFromDevAccount(chain, multicall3Address, data)

  await expectFailed(unpaid.response, 'invalid_exact_evm_nonce_already_used')
  const settled = await settle(paid.response)
  expect([settled.status, settled.body.txHash]).toEqual([200, hash])
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)
})

test('a payment whose payer is blacklisted after it was verified fails, and no money moves', async () => {
  const payer = await aPayer(chain)
  const { response } = await verified(payer)
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  await send(encodeFunctionData({ abi: token, functionName: 'blacklist', args: [payer.account.address] }))
  await expectFailed(response, 'invalid_exact_evm_transaction_failed')
  expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(before)
})

async function expectFailed(response: Answer, reason: string): Promise<void> {
  const [failed, again] = [await settle(response), await settle(response)]
  expect([failed.status, codeOf(failed), failed.body.reason]).toEqual([409, 'settlement-failed', reason])
  expect([again.status, again.body.reason]).toEqual([409, reason])
  const { body } = await world.call(org.testKey, 'GET', `/payments/${String(response.body.paymentId)}`)
  expect(body).toMatchObject({ status: 'settlement_failed', failureReason: reason, txHash: null, settledAt: null })
  expect(await eventsOf(response)).toEqual(['payment.received', 'payment.settlement_failed'])
  const audited = await auditedOf(world.database.db, response.body.paymentId)
  expect(audited).toEqual([{ action: 'payments.settlement_failed', actor: { kind: 'system' }, details: { reason } }])
}
