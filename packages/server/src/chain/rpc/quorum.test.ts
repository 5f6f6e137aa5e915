import { type DevChain, fundToken, sendFromDevAccount } from '@purser/devnet'
import {
  type Address,
  encodeTransferWithAuthorization,
  type Hex,
  hexToBytes,
  parseEcdsa,
  topics,
} from '@purser/protocol'
import { toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { aLiarStage, type LiarStage } from '../../../test/liar-stage.ts'
import { aKeptLog } from '../../../test/log-lines.ts'
import type { Lie, LyingNode } from '../../../test/lying-node.ts'
import { ShiftedClock } from '../../../test/webhooks/clock.ts'
import { type Clock, systemClock } from '../../platform/clock.ts'
import { isProblem } from '../../platform/errors.ts'
import type { Chain, Receipt } from '../port.ts'

const payTo: Address = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
let dev: DevChain
let liar: LyingNode
let stage: LiarStage

beforeAll(async () => {
  stage = await aLiarStage()
  ;({ dev, liar } = stage)
})
afterEach(() => liar.tellTheTruth())
afterAll(() => stage?.stop())

function among(trueNodes: number, confirmationDepth = 1, clock: Clock = systemClock): Chain {
  return stage.among(trueNodes, { confirmationDepth, clock })
}

async function aUse() {
  const token = dev.tokens.USDC ?? '0x'
  const payer = privateKeyToAccount(generatePrivateKey())
  await fundToken(dev, 'USDC', payer.address, 10_000n)
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const message = { from: payer.address, to: payTo, value: 10_000n, validAfter: 0n, validBefore: 2n ** 48n, nonce }
  const signature = await payer.signTypedData({
    domain: { name: 'USDC', version: '2', chainId: dev.chainId, verifyingContract: token },
    primaryType: 'TransferWithAuthorization',
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    message,
  })
  const parsed = parseEcdsa(hexToBytes(signature))
  if (typeof parsed === 'string') throw new Error(parsed)
  const id = { token, authorizer: payer.address, nonce, validBefore: message.validBefore }
  const use = () => sendFromDevAccount(dev, token, encodeTransferWithAuthorization(message, parsed))
  return { id, payer: payer.address, use }
}

async function receiptOf(hash: Hex): Promise<Receipt> {
  const receipt = await among(0).receipt(hash)
  if (receipt === undefined) throw new Error('no receipt')
  return receipt
}

const changed =
  (changes: object): Lie =>
  async ({ truth }) => {
    const reply = await truth()
    return 'result' in reply ? { result: { ...Object(reply.result), ...changes } } : reply
  }

test('a receipt in a future block is not confirmed, whether one of two nodes invents it or one of three', async () => {
  const receipt = { ...(await receiptOf(await (await aUse()).use())), blockNumber: 9_999_999n }
  const blockNumber = '0x98967f'
  liar.lie('eth_blockNumber', () => ({ result: '0x989fff' }))
  liar.lie('eth_getBlockByNumber', async ({ params, truth }) =>
    params[0] === 'latest'
      ? changed({ number: '0x989fff' })({ params, truth })
      : { result: { number: blockNumber, hash: receipt.blockHash, transactions: [receipt.transactionHash] } },
  )
  liar.lie('eth_getTransactionReceipt', changed({ blockNumber }))
  expect(await among(1).confirmReceipts([receipt])).toEqual(['undecided'])
  expect(await among(2).confirmReceipts([receipt])).toEqual(['undecided'])
})

test('a transaction that one of two nodes hides stays undecided, and is confirmed once that node recovers', async () => {
  const receipt = await receiptOf(await (await aUse()).use())
  const chain = among(1)
  liar.lie('eth_getBlockByNumber', async ({ params, truth }) =>
    changed(params[0] === 'latest' ? {} : { transactions: [] })({ params, truth }),
  )
  expect(await chain.confirmReceipts([receipt])).toEqual(['undecided'])
  expect(await among(2).confirmReceipts([receipt])).toEqual(['yes'])
  liar.tellTheTruth()
  expect(await chain.confirmReceipts([receipt])).toEqual(['yes'])
})

test.each([
  ['effectiveGasPrice', '0x1'],
  ['effectiveGasPrice', '0xffffffffffff'],
  ['l1Fee', '0xde0b6b3a7640000'],
  ['operatorFee', '0x5'],
  ['gasUsed', '0x7a1200'],
])('a receipt whose %s one node changes is not confirmed', async (name, value) => {
  const hash = await (await aUse()).use()
  liar.lie('eth_getTransactionReceipt', changed({ [name]: value }))
  const invented = await receiptOf(hash)
  expect(await among(1).confirmReceipts([invented])).toEqual(['undecided'])
  expect(await among(2).confirmReceipts([invented])).toEqual(['no'])
  liar.tellTheTruth()
  expect(await among(2).confirmReceipts([await receiptOf(hash)])).toEqual(['yes'])
})

test('a receipt is confirmed whether or not a node reports the gas of its bytes, and not with another gas', async () => {
  const hash = await (await aUse()).use()
  liar.lie('eth_getTransactionReceipt', changed({ gasUsedForL1: '0x5' }))
  const receipt = await receiptOf(hash)
  expect(receipt.dataGas).toBe(5n)
  const verdicts = [among(1).confirmReceipts([receipt]), among(0).confirmReceipts([{ ...receipt, dataGas: 6n }])]
  expect(await Promise.all(verdicts)).toEqual([['yes'], ['no']])
  liar.lie('eth_getTransactionReceipt', changed({ gasUsedForL1: null }))
  expect(await among(1).confirmReceipts([receipt])).toEqual(['yes'])
})

test('a transaction counts as unmined only when a majority has no receipt of it', async () => {
  const hash = await (await aUse()).use()
  const unknown: Hex = `0x${'7'.repeat(64)}`
  liar.lie('eth_getTransactionReceipt', () => ({ result: null }))
  const verdicts = await Promise.all([among(1), among(2)].map((chain) => chain.isInNoBlock([unknown, hash])))
  expect(verdicts).toEqual(['undecided', 'no'])
  liar.tellTheTruth()
  expect(await among(1).isInNoBlock([unknown])).toBe('yes')
})

test('a receipt that a node does not return because of its length leaves only itself undecided', async () => {
  const hashes = [await (await aUse()).use(), await (await aUse()).use()]
  const [long = '0x'] = hashes
  const receipts = await Promise.all(hashes.map(receiptOf))
  liar.lie('eth_getTransactionReceipt', ({ params, truth }) =>
    params[0] === long ? { error: { code: -32_008, message: 'Response is too big' } } : truth(),
  )
  const chain = among(0)
  const claims = receipts.map(({ transactionHash, blockNumber, blockHash, logs }) => {
    const transfer = logs.find((log) => log.topics[0] === topics.transfer && log.topics.length === 3)
    if (transfer === undefined) throw new Error('the payment transfers nothing')
    const to: Address = `0x${(transfer.topics[2] ?? '').slice(26)}`
    return { token: transfer.address, to, txHash: transactionHash, blockNumber, blockHash, isOf: () => true }
  })
  const expected = ['undecided', 'yes']
  expect(await chain.confirmReceipts(receipts)).toEqual(expected)
  expect(await chain.areInBlocks(hashes)).toEqual(expected)
  expect((await chain.lookUp(hashes)).receipts).toEqual(['unread', receipts[1]])
  expect((await chain.watch([], hashes)).receipts).toEqual(['unread', receipts[1]])
  expect(await chain.blocks.confirmTransfers(claims), 'the logs show a transfer').toEqual(['yes', 'yes'])
  const others = claims.map((claim) => ({ ...claim, isOf: () => claim !== claims[0] }))
  expect(await chain.blocks.confirmTransfers(others), 'and deny none').toEqual(expected)
  expect(await among(2).confirmReceipts(receipts), 'the others decide').toEqual(['yes', 'yes'])
})

test('a node that denies a transfer of another one is named in the log where no majority decides, once in five minutes', async () => {
  const { transactionHash, blockNumber, blockHash, logs } = await receiptOf(await (await aUse()).use())
  const transfer = logs.find((log) => log.topics[0] === topics.transfer)
  if (transfer === undefined) throw new Error('the payment transfers nothing')
  const to: Address = `0x${(transfer.topics[2] ?? '').slice(26)}`
  const claim = { token: transfer.address, to, txHash: transactionHash, blockNumber, blockHash, isOf: () => true }
  liar.lie('eth_getTransactionReceipt', async ({ truth }) => {
    const reply = await truth()
    return 'result' in reply ? { result: { ...Object(reply.result), logs: [] } } : reply
  })
  const { lines, log } = aKeptLog()
  const clock = new ShiftedClock()
  const [two, three] = [1, 2].map((others) => stage.among(others, { clock, log }))
  const denials = () => lines.filter((line) => line.includes('a node denies a transfer that another node has'))
  expect(await three?.blocks.confirmTransfers([claim])).toEqual(['yes'])
  expect(denials()).toEqual([])
  for (let times = 0; times < 3; times += 1) expect(await two?.blocks.confirmTransfers([claim])).toEqual(['undecided'])
  expect(denials()).toEqual([expect.stringMatching(/"network":"base-sepolia".*"node":1\b/)])
  expect(denials().join(), 'without its address').not.toContain(liar.url)
  clock.forward(300_000)
  await two?.blocks.confirmTransfers([claim])
  expect(denials()).toHaveLength(2)
})

test('the transfers of one payer in a transaction are read, and a node that returns more than half a MiB of them has no vote', async () => {
  const { id, payer, use } = await aUse()
  const transactionHash = await use()
  const topicOf = (account: Address): Hex => `0x${account.slice(2).toLowerCase().padStart(64, '0')}`
  const memo: Hex = `0x${'1'.repeat(64)}`
  const log = { address: id.token, topics: [topics.transferWithMemo, topicOf(payer), topicOf(payTo), memo], data: memo }
  let count = 1
  const filters: unknown[] = []
  liar.lie('eth_getLogs', ({ params }) => {
    filters.push(Object(params[0]).topics)
    return { result: Array.from({ length: count }, () => ({ ...log, transactionHash })) }
  })
  const wanted = { hash: transactionHash, token: id.token, payer, recipient: payTo }
  expect(await among(0).memoTransfers(wanted)).toEqual([expect.objectContaining({ topics: log.topics })])
  expect(filters).toEqual([[topics.transferWithMemo, topicOf(payer), topicOf(payTo)]])
  count = 2_000
  expect(await among(0).memoTransfers(wanted)).toBe('undecided')
})

test('a receipt that is not deep enough is undecided, however high a head a node reports', async () => {
  const receipt = await receiptOf(await (await aUse()).use())
  liar.lie('eth_getBlockByNumber', async ({ params, truth }) =>
    changed(params[0] === 'latest' ? { number: '0xffffff' } : {})({ params, truth }),
  )
  expect(await among(2, 5).confirmReceipts([receipt])).toEqual(['undecided'])
})

test('a node that has not seen a use cannot make the authorization expire', async () => {
  const { id, use } = await aUse()
  await use()
  const past = { ...id, validBefore: 1n }
  liar.lie('eth_call', async ({ truth }) => {
    const reply = await truth()
    if (!('result' in reply) || typeof reply.result !== 'string') return reply
    return { result: reply.result.replace(/1$/, '0') }
  })
  expect(await among(1).authorizationStates([past])).toEqual(['undecided'])
  expect(await among(2).authorizationStates([past])).toEqual(['used'])
  liar.tellTheTruth()
  expect(await among(1).authorizationStates([past])).toEqual(['used'])
})

test('an authorization is void at exactly `validBefore`, by block time', async () => {
  const { id } = await aUse()
  const { block } = await among(0).stateAt([])
  const states = [0n, 1n].map((later) => ({ ...id, validBefore: block.timestampSeconds + later }))
  expect(await among(1).authorizationStates(states)).toEqual(['expired', 'open'])
  const permits = [-1n, 0n].map((later) => ({
    owner: id.authorizer,
    nonce: 7n,
    deadline: block.timestampSeconds + later,
  }))
  expect(await among(1).permitStates(permits)).toEqual(['expired', 'open'])
})

test('a use is found at a node that serves few blocks per request, and the working range size is remembered', async () => {
  const { id, use } = await aUse()
  const transactionHash = await use()
  const refuse: Lie = ({ params, truth }) => {
    const { fromBlock, toBlock } = Object(params[0])
    const blocks = Number(toBlock) - Number(fromBlock) + 1
    return blocks > 2 ? { error: { code: -32_005, message: 'query exceeds max block range' } } : truth()
  }
  liar.lie('eth_getLogs', refuse)
  const chain = among(0)
  const options = { since: new Date() }
  expect(await chain.findAuthorizationUse(id, options)).toMatchObject({ outcome: 'used', receipt: { transactionHash } })
  const requested = liar.requested('eth_getLogs')
  expect(requested).toBeGreaterThan(1)
  expect(await chain.findAuthorizationUse(id, options)).toMatchObject({ outcome: 'used' })
  expect(liar.requested('eth_getLogs') - requested).toBe(1)
})

test('a failed lookup of one authorization does not fail the others', async () => {
  const [bad, good] = [await aUse(), await aUse()]
  await bad.use()
  await good.use()
  liar.lie('eth_getLogs', ({ params, truth }) =>
    JSON.stringify(params).includes(bad.id.nonce.slice(2)) ? { error: { code: -32_000, message: 'no' } } : truth(),
  )
  const chain = among(0)
  const found = await Promise.allSettled(
    [bad, good].map(({ id }) => chain.findAuthorizationUse(id, { since: new Date() })),
  )
  expect(found.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
})

test('one of two nodes cannot set a wrong first nonce, and one of three cannot delay it', async () => {
  const { address } = privateKeyToAccount(generatePrivateKey())
  liar.lie('eth_getTransactionCount', () => ({ result: '0x100000' }))
  const refused: unknown = await among(1)
    .firstNonce(address)
    .catch((error: unknown) => error)
  expect(isProblem(refused, 'chain-unavailable')).toBe(true)
  expect(await among(2).firstNonce(address)).toBe(0n)
  liar.tellTheTruth()
  expect(await among(1).firstNonce(address)).toBe(0n)
})

test('a single node must report a first nonce above 0 for two minutes', async () => {
  const { address } = privateKeyToAccount(generatePrivateKey())
  const clock = new ShiftedClock()
  const chain = among(0, 1, clock)
  const isRefused = () =>
    chain.firstNonce(address).then(
      () => false,
      (error: unknown) => isProblem(error, 'chain-unavailable'),
    )
  liar.lie('eth_getTransactionCount', () => ({ result: '0x100000' }))
  expect(await isRefused()).toBe(true)
  clock.forward(119_000)
  expect(await isRefused()).toBe(true)
  // A different count restarts the two minutes.
  liar.lie('eth_getTransactionCount', () => ({ result: '0x7' }))
  clock.forward(2_000)
  expect(await isRefused()).toBe(true)
  clock.forward(121_000)
  expect(await chain.firstNonce(address)).toBe(7n)
})

test('a block that was reorganized away between two reads leads to no answer', async () => {
  const { id } = await aUse()
  // As real nodes do (EIP-1898): a request for a block that is no longer canonical fails, and a request for its height uses the new chain.
  liar.lie('eth_call', ({ params, truth }) =>
    Object(params[1]).requireCanonical === true && Object(params[1]).blockHash !== undefined
      ? { error: { code: -32_000, message: 'hash is not currently canonical' } }
      : truth(),
  )
  expect(await among(0).authorizationStates([{ ...id, validBefore: 1n }])).toEqual(['undecided'])
  liar.tellTheTruth()
  expect(await among(0).authorizationStates([{ ...id, validBefore: 1n }])).toEqual(['expired'])
})

test('an account’s state is read at one block confirmed by a majority, and is undefined when two nodes contradict each other', async () => {
  const { id, payer } = await aUse()
  const questions = [
    { account: payer, asset: id.token },
    { account: payer, asset: 'coin' as const },
  ]
  liar.lie('eth_getBalance', () => ({ result: '0xffff' }))
  expect((await among(2).stateAt(questions)).values).toEqual([10_000n, 0n])
  expect((await among(1).stateAt(questions)).values).toEqual([10_000n, undefined])
})

test('of several nonces one decision serves all, and a receipt that a node does not deliver takes its vote on that nonce alone', async () => {
  const [unread, absent]: Hex[] = [`0x${'1'.repeat(64)}`, `0x${'2'.repeat(64)}`]
  liar.lie('eth_getTransactionCount', () => ({ result: '0x5' }))
  liar.lie('eth_getTransactionReceipt', ({ params: [hash] }) =>
    hash === unread ? { error: { code: -32_000, message: 'busy' } } : { result: null },
  )
  const before = liar.requested('eth_getTransactionCount')
  const question = (nonce: bigint, hash = absent) => ({ sender: payTo, nonce, hashes: [hash ?? '0x'] as const })
  const verdicts = await among(0).areNoncesLost([question(4n), question(4n, unread), question(5n)])
  expect(verdicts).toEqual(['yes', 'undecided', 'no'])
  expect(liar.requested('eth_getTransactionCount') - before).toBe(1)
})
