import {
  type DevChain,
  deploySmartWallet,
  fundToken,
  smartWalletAddress,
  smartWalletDeployment,
  startChain,
  tokenBalance,
  walletFactoryAddress,
} from '@purser/devnet'
import { type Address, createPublicClient, type Hex, http, serializeErc6492Signature } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aPaymentBody, facilitatorOf } from '../facilitated.ts'
import {
  type Answer,
  aPayer,
  aWorld,
  type CredentialChanges,
  codeOf,
  countByStatus,
  type Org,
  type Payer,
  request,
  type World,
} from '../world.ts'

let chain: DevChain
let world: World
/** Another process of the same deployment, which settles deployments of the test factory. */
let deploying: string
let org: Org
let wallet: { id: string; address: Address }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  deploying = (await world.another({ eip6492Factories: [walletFactoryAddress] })).base
  org = await world.organisation()
  wallet = await world.wallet(org)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const resource = 'https://api.example.com/weather'
const price = '0.01'

function challenge(): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/challenge', { walletId: wallet.id, resource, price })
}

function verify(credential: string, base = world.base): Promise<Answer> {
  return request(base, {
    key: org.testKey,
    method: 'POST',
    path: '/payments/verify',
    body: { protocol: 'x402', credential, price, walletId: wallet.id, resource },
  })
}

function settle(verified: Answer, base = world.base): Promise<Answer> {
  const { paymentId, settlementToken } = verified.body
  return request(base, {
    key: org.testKey,
    method: 'POST',
    path: '/payments/settle',
    body: { paymentId, settlementToken },
  })
}

/** Status and reason, or code; and the number of rows written. */
async function refusalOf(credential: string, base = world.base): Promise<string> {
  const before = await countPayments()
  const response = await verify(credential, base)
  const left = (await countPayments()) - before
  return `${response.status} ${String(response.body.reason ?? codeOf(response))}, ${left} rows`
}

async function countPayments(): Promise<number> {
  const { count } = await world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from payments`,
  )
  return Number(count)
}

interface ContractPayer {
  readonly address: Address
  readonly owner: Payer
  readonly salt: bigint
}

let salts = 0n

/** A contract account with money, deployed or at its address before deployment. */
async function aContractPayer({
  deployed,
  rawUsdc = 1_000_000n,
}: {
  deployed: boolean
  rawUsdc?: bigint
}): Promise<ContractPayer> {
  const owner = await aPayer()
  const salt = ++salts
  const address = await (deployed ? deploySmartWallet : smartWalletAddress)(chain, owner.account.address, salt)
  await fundToken(chain, 'USDC', address, rawUsdc)
  return { address, owner, salt }
}

async function credentialOf(
  payer: ContractPayer,
  signature: (own: Hex) => Hex = (own) => own,
  signer = payer.owner,
): Promise<string> {
  return signer.credential(await challenge(), signedFor(payer, signature))
}

function signedFor(payer: ContractPayer, signature: (own: Hex) => Hex): CredentialChanges {
  const after: CredentialChanges['after'] = ({ payload }) => {
    payload.signature = signature(Hexadecimal.parse(payload.signature))
  }
  return { sign: { from: payer.address }, after }
}

const Hexadecimal = z.templateLiteral(['0x', z.string()])

function wrapped(payer: ContractPayer, changes: { factory?: Address; data?: Hex } = {}): (own: Hex) => Hex {
  const { factory, data } = { ...smartWalletDeployment(payer.owner.account.address, payer.salt), ...changes }
  return (own) => serializeErc6492Signature({ address: factory, data, signature: own })
}

const client = () => createPublicClient({ transport: http(chain.rpcUrl) })

test('a contract account pays with its owner’s signature (EIP-1271), is settled, and its credential buys once', async () => {
  const payer = await aContractPayer({ deployed: true })
  const credential = await credentialOf(payer)
  const before = await tokenBalance(chain, 'USDC', wallet.address)

  const verified = await verify(credential)
  expect([verified.status, verified.body.payer]).toEqual([200, payer.address])
  expect((await settle(verified)).status).toBe(200)
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)
  expect(await refusalOf(credential)).toBe('409 duplicate-payment, 0 rows')
})

test('another account’s signature is valid neither for a contract account nor for an ordinary one', async () => {
  const payer = await aContractPayer({ deployed: true })
  const stranger = await aPayer()
  expect(await refusalOf(await credentialOf(payer, undefined, stranger))).toBe(
    '402 invalid_exact_evm_signature, 0 rows',
  )
  const ordinary = await aPayer(chain)
  const forged = await stranger.credential(await challenge(), { sign: { from: ordinary.account.address } })
  expect(await refusalOf(forged)).toBe('402 invalid_exact_evm_signature, 0 rows')
})

test('a contract account that accepts no such signature is refused, and one without the money gets that reason', async () => {
  const payer = await aContractPayer({ deployed: true })
  for (const signature of ['0x', '0x1234', `0x${'12'.repeat(65)}`, `0x${'00'.repeat(4_000)}`] as const) {
    expect(await refusalOf(await credentialOf(payer, () => signature)), signature.slice(0, 10)).toBe(
      '402 invalid_exact_evm_signature, 0 rows',
    )
  }
  const poor = await aContractPayer({ deployed: true, rawUsdc: 9_999n })
  expect(await refusalOf(await credentialOf(poor))).toBe('402 invalid_exact_evm_insufficient_balance, 0 rows')
})

test('a wallet that does not exist yet is refused unless the operator settles deployments of its factory', async () => {
  const payer = await aContractPayer({ deployed: false })
  const credential = await credentialOf(payer, wrapped(payer))
  expect(await refusalOf(credential)).toBe('402 eip6492_factory_not_allowed, 0 rows')
  expect(await client().getCode({ address: payer.address })).toBeUndefined()
  expect(await refusalOf(await credentialOf(payer))).toBe('402 invalid_exact_evm_signature, 0 rows')
})

test('a wallet that does not exist yet is deployed by the transaction that settles its payment', async () => {
  const payer = await aContractPayer({ deployed: false })
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const verified = await verify(await credentialOf(payer, wrapped(payer)), deploying)
  expect([verified.status, verified.body.payer]).toEqual([200, payer.address])
  expect(await client().getCode({ address: payer.address })).toBeUndefined()

  const settled = await settle(verified, deploying)
  expect(settled.status).toBe(200)
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)
  const receipt = await client().getTransactionReceipt({ hash: Hexadecimal.parse(settled.body.txHash) })
  const codeAt = (blockNumber: bigint) => client().getCode({ address: payer.address, blockNumber })
  expect(await codeAt(receipt.blockNumber - 1n)).toBeUndefined()
  expect(await codeAt(receipt.blockNumber)).toMatch(/^0x../)
})

test('two payments of a wallet that does not exist yet, and one beside them, settle at once', async () => {
  const payer = await aContractPayer({ deployed: false })
  const ordinary = await aPayer(chain)
  const credentials = [
    await credentialOf(payer, wrapped(payer)),
    await credentialOf(payer, wrapped(payer)),
    await ordinary.credential(await challenge()),
  ]
  const verified = await Promise.all(credentials.map((credential) => verify(credential, deploying)))
  expect(countByStatus(verified)).toEqual({ 200: 3 })
  expect(countByStatus(await Promise.all(verified.map((response) => settle(response, deploying))))).toEqual({ 200: 3 })
})

test('a wrapper around a wrong signature, or a deployment of another wallet, is refused', async () => {
  const payer = await aContractPayer({ deployed: false })
  const stranger = await aPayer()
  const another = smartWalletDeployment(payer.owner.account.address, payer.salt + 1_000n).data
  const forgeries = [
    await credentialOf(payer, wrapped(payer), stranger),
    await credentialOf(payer, wrapped(payer, { data: another })),
    await credentialOf(payer, wrapped(payer, { data: '0xdeadbeef' })),
    await credentialOf(payer, () => wrapped(payer)('0x')),
  ]
  for (const credential of forgeries)
    expect(await refusalOf(credential, deploying)).toBe('402 invalid_exact_evm_signature, 0 rows')
})

test('the day’s gas budget is charged with the gas limit of a contract account, not with that of an ordinary one', async () => {
  const [first, second, ordinary] = [
    await aContractPayer({ deployed: true }),
    await aContractPayer({ deployed: true }),
    await aPayer(chain),
  ]
  const thrifty = (await world.another({ settleNanoUsdPerDayMax: 550_000n })).base
  org = await world.organisation()
  wallet = await world.wallet(org)
  expect((await verify(await credentialOf(first), thrifty)).status).toBe(200)
  expect(await refusalOf(await credentialOf(second), thrifty)).toBe('429 settlement-budget-exceeded, 0 rows')
  expect((await verify(await ordinary.credential(await challenge()), thrifty)).status).toBe(200)
})

const unlisted = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'

test('an existing wallet may keep wrapping its signatures, whatever factory the wrapper names', async () => {
  const payer = await aContractPayer({ deployed: true })
  for (const sign of [wrapped(payer), wrapped(payer, { factory: unlisted })]) {
    const verified = await verify(await credentialOf(payer, sign))
    expect(verified.status).toBe(200)
    expect((await settle(verified)).status).toBe(200)
  }
  expect(await refusalOf(await credentialOf(payer, wrapped(payer), await aPayer()))).toBe(
    '402 invalid_exact_evm_signature, 0 rows',
  )
})

test('the facilitator never calls the factory that an existing wallet names', async () => {
  const payer = await aContractPayer({ deployed: true })
  const changes = signedFor(payer, wrapped(payer, { factory: unlisted }))
  const body = await aPaymentBody(world, org, { payer: payer.owner, wallet, changes })
  const facilitator = facilitatorOf(world.base, org.testKey)
  expect((await facilitator.verify(body)).body).toEqual({ isValid: true, payer: payer.address })
  const settled = (await facilitator.settle(body)).body
  expect(settled).toMatchObject({ success: true, payer: payer.address })
  const hash = Hexadecimal.parse(settled.transaction)
  const [transaction, { deployment }] = await Promise.all([
    client().getTransaction({ hash }),
    world.database.db.one(
      z.object({ deployment: z.unknown() }),
      sql`select settlement -> 'deployment' as deployment from payments where tx_hash = ${hash}`,
    ),
  ])
  expect([transaction.to?.toLowerCase(), deployment]).toEqual([chain.tokens.USDC?.toLowerCase(), null])
})
