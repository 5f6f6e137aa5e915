import {
  AbiMalformed,
  type Address,
  decodeBool,
  decodeBytes32,
  decodeString,
  decodeUint256,
  encodeBalanceOf,
  encodeIsSanctioned,
  type Hex,
  l1FeeOf,
  type Network,
  tokenReads,
} from '@purser/protocol'
import { fail } from './errors.ts'
import { bytesOf } from './fees/costs.ts'
import { takesDataGas } from './fees/fees.ts'
import { createOfferedFees, medianOf, suggestedTip } from './fees/offered-fees.ts'
import type {
  Chain,
  Head,
  Holding,
  HoldingQuestion,
  QuorumReads,
  Sanctions,
  SignerNeed,
  TempoTransaction,
  TempoTrial,
  TokenDomain,
  TriedCall,
} from './port.ts'
import { createBatchedReads } from './reads/batched-reads.ts'
import { requestTrial, tryCalls, tryOne } from './reads/call-trials.ts'
import { balancesCall, readBalances, readHoldings } from './reads/holdings.ts'
import { createPaymentReads } from './reads/payment-reads.ts'
import {
  atLeast,
  findReceipts,
  lookUp,
  ownReceipt,
  receiptAnywhere,
  shortReceipt,
  watch,
} from './reads/shown-receipts.ts'
import { simulate } from './reads/simulate.ts'
import { collect, electorateOf, requestAcceptance, requestAgreement, requestVotes } from './rpc/acceptance.ts'
import { returnedBy } from './rpc/call-fault.ts'
import { createLogReader } from './rpc/logs.ts'
import { readHead, readHex, readQuantity, resultOf } from './rpc/read.ts'
import type { NodeRpc, Rpc, RpcResponse, Voter } from './rpc/rpc.ts'
import { send } from './rpc/send.ts'
import { sendTempo, tryTempo } from './tempo/node.ts'

/** The network's reads and sends that need no block of a quorum: the `Chain` port without block reads and quorum reads. */
export function createChain(network: Network, rpc: Rpc & NodeRpc): Omit<Chain, 'blocks' | keyof QuorumReads> {
  const batched = createBatchedReads(rpc, network, createOfferedFees(rpc, network))
  const payments = createPaymentReads(rpc, headOf)
  return {
    network,
    ...batched,
    ...payments,
    trySending: takesDataGas(network) ? withDataGas(payments, batched) : payments.trySending,
    agreedCall: (to, data, meaningOf = (response) => response) =>
      requestAgreement(electorateOf(rpc.voters), ({ rpc: one }) => readCall(one, to, data), meaningOf),
    balances: (questions) => agreedBalances(rpc, questions),
    async coin(account) {
      const [wei = 0n] = await agreedNumbers(rpc, async (one) => [
        readQuantity(await one.result('eth_getBalance', [account, 'latest']), 'balance'),
      ])
      return wei
    },
    agreedHoldings: (questions) => agreedHoldings(rpc, network, questions),
    sanctions: (oracle, accounts) => agreedSanctions(rpc, oracle, accounts),
    tokenDomain: createTokenDomain(rpc),
    tryCalls: (from, calls) =>
      requestTrial(network, electorateOf(rpc.voters), ({ rpc: one }) => tryCalls(one, from, calls)),
    refusalOf: (call) => agreedRefusal(rpc, call),
    simulate: (simulation) => agreedSimulation(rpc, simulation),
    signersToSendSingly: (needs) => signersToSendSingly(rpc, needs),
    code: (address) => agreedCode(rpc, address),
    head: async () => atLeast(await headOf(rpc), rpc),
    suggestedTip: () => suggestedTip(rpc),
    send: (raws) => send(rpc, raws),
    tryTempo: (transaction) => agreedTrial(rpc, transaction),
    sendTempo: (raws) => sendTempo(rpc, raws),
    ...sentReads(rpc),
  }
}

/** Tries calls with the gas that the bytes of their transactions take before they run. */
function withDataGas(
  { trySending }: Pick<Chain, 'trySending'>,
  { offeredFees }: Pick<Chain, 'offeredFees'>,
): Chain['trySending'] {
  return async (call) => {
    const { dataGas } = await offeredFees()
    return trySending({ ...call, gasLimit: call.gasLimit + l1FeeOf(dataGas, bytesOf(call.data)) })
  }
}

/** The reads of sent transactions. */
function sentReads(rpc: Rpc & NodeRpc) {
  return {
    async transactionCount(account) {
      const [count = 0n] = await agreedNumbers(rpc, async (one) => [
        readQuantity(await one.result('eth_getTransactionCount', [account, 'latest']), 'transaction count'),
      ])
      return count
    },
    findReceipts: (hashes) => findReceipts(rpc, hashes),
    findEvent: createFindEvent(rpc),
    receipt: (hash) => receiptAnywhere(rpc, hash),
    agreedLogs: (hash) =>
      requestAgreement(
        electorateOf(rpc.voters),
        async ({ rpc: one }) => (await ownReceipt(one, hash))?.logs,
        (logs) =>
          JSON.stringify(logs?.map(({ address, topics, data }) => [address, topics, data]) ?? null).toLowerCase(),
      ),
    shortReceipt: (hash) => shortReceipt(rpc, hash),
    watch: (senders, hashes) => watch(rpc, senders, hashes),
    lookUp: (hashes) => lookUp(rpc, hashes),
  } satisfies Partial<Chain>
}

async function readCall(rpc: Rpc, to: Address, data: Hex): Promise<Hex> {
  return readHex(await rpc.result('eth_call', [{ to, data }, 'latest']), 'call result')
}

/** Balances as of the latest block, each the most that a majority of the nodes reports at least. */
function agreedBalances(
  rpc: NodeRpc,
  questions: readonly { readonly token: Address; readonly account: Address }[],
): Promise<readonly bigint[]> {
  const calls = questions.map(({ token: to, account }) => ({
    method: 'eth_call',
    params: [{ to, data: encodeBalanceOf(account) }, 'latest'],
  }))
  return agreedNumbers(rpc, async (one) =>
    (await one.batch(calls)).map((response) => decoded(decodeUint256, readHex(resultOf(response), 'call result'))),
  )
}

/** Each the most that a majority of the nodes reports at least, so that one of three neither invents nor hides any of it. */
async function agreedNumbers(
  { voters }: NodeRpc,
  query: (rpc: Rpc) => Promise<readonly bigint[]>,
): Promise<readonly bigint[]> {
  const { voters: electors, needed } = electorateOf(voters)
  const read: (readonly bigint[])[] = []
  const isSame = (one: readonly bigint[], other: readonly bigint[]) => one.every((number, at) => number === other[at])
  await collect(
    electors,
    ({ rpc }) => query(rpc),
    (numbers) => {
      read.push(numbers)
      return read.filter((one) => isSame(one, numbers)).length >= needed
    },
  )
  if (read.length < needed) throw fail('chain-unavailable', {}, new Error('too few nodes answer'))
  return (read[0] ?? []).map((_, index) => {
    const reported = read.map((numbers) => numbers[index] ?? 0n)
    return reported.toSorted((one, other) => (one > other ? -1 : one < other ? 1 : 0))[needed - 1] ?? 0n
  })
}

async function agreedHoldings(
  { voters }: NodeRpc,
  network: Network,
  questions: readonly HoldingQuestion[],
): Promise<readonly Holding[]> {
  const known = new Map<string, Holding>()
  const votes = await requestVotes(electorateOf(voters), questions.length, async ({ rpc }) =>
    (await readHoldings(rpc, network, questions)).map((holding) => {
      if (holding instanceof Error) throw holding
      const text = [holding.native ?? '', ...holding.tokens].join()
      known.set(text, holding)
      return text
    }),
  )
  return votes.map((vote) => {
    const holding = vote === undefined ? undefined : known.get(vote)
    if (holding === undefined) throw fail('chain-unavailable', {}, new Error('the nodes do not agree on a balance'))
    return holding
  })
}

/** Returns the oracle's result for each account, if a majority of the nodes agrees, so that one node cannot clear a listed account. The time is the median. */
async function agreedSanctions({ voters }: NodeRpc, oracle: Address, accounts: readonly Address[]): Promise<Sanctions> {
  const times: bigint[] = []
  const votes = await requestVotes(electorateOf(voters), accounts.length, async ({ rpc }) => {
    const [head, ...responses] = await rpc.batch([
      { method: 'eth_getBlockByNumber', params: ['latest', false] },
      ...accounts.map((account) => ({
        method: 'eth_call',
        params: [{ to: oracle, data: encodeIsSanctioned(account) }, 'latest'],
      })),
    ])
    const sanctioned = responses.map((response) => decoded(decodeBool, readHex(resultOf(response), 'call result')))
    times.push(readHead(resultOf(head)).timestampSeconds)
    return sanctioned.map((isSanctioned) => (isSanctioned ? 'sanctioned' : 'clean'))
  })
  return {
    timestampSeconds: medianOf(times),
    sanctioned: votes.map((vote) => (vote === undefined ? undefined : vote === 'sanctioned')),
  }
}

/** Simulates a Tempo transaction. A majority of the nodes must accept it, because the sponsor pays for a revert. */
async function agreedTrial({ voters }: NodeRpc, transaction: TempoTransaction): Promise<TempoTrial> {
  const query = ({ rpc }: Voter) => tryTempo(rpc, transaction)
  const found = await requestAcceptance(electorateOf(voters), query, ({ ok }) => ok)
  return found.isAccepted ? { ok: true } : found.response
}

/** Returns the token's EIP-712 domain on which a majority of the nodes agrees, because a wrong domain stops all payments in the token. */
function agreedDomain({ voters }: NodeRpc, token: Address): Promise<TokenDomain | undefined> {
  const query = async ({ rpc }: Voter) => readDomain(await rpc.batch(domainReads(token)))
  return requestAgreement(electorateOf(voters), query, (domain) => JSON.stringify(domain ?? null))
}

/** Creates the function that keeps each token's domain once it is known. */
function createTokenDomain(rpc: NodeRpc): Chain['tokenDomain'] {
  const domains = new Map<string, TokenDomain>()
  return async (token) => {
    const known = domains.get(token.toLowerCase()) ?? (await agreedDomain(rpc, token))
    if (known !== undefined) domains.set(token.toLowerCase(), known)
    return known
  }
}

async function agreedSimulation(
  { voters }: NodeRpc,
  { from, calls, readings, isExpected }: Parameters<Chain['simulate']>[0],
): ReturnType<Chain['simulate']> {
  return requestAgreement(
    electorateOf(voters),
    ({ rpc }) => simulate(rpc, from, calls, readings),
    (found) => (found.outcome === 'ran' ? `ran: ${isExpected(found.changes)}` : found.outcome),
  )
}

async function agreedRefusal({ voters }: NodeRpc, call: TriedCall): Promise<string | undefined> {
  const trial = await requestAgreement(
    electorateOf(voters),
    ({ rpc }) => tryOne(rpc, call),
    (one) => (one.ok ? 'taken' : `refused: ${one.reason}`),
  )
  return trial.ok ? undefined : (trial.reason ?? undefined)
}

/**
 * A signer shares a transaction only if a majority of the nodes reports no code and a sufficient balance: a contract account could burn gas that others
 * pay for. One request to each node. The votes name no balance, which may differ from block to block, and only whether it suffices.
 */
async function signersToSendSingly({ voters }: NodeRpc, needs: readonly SignerNeed[]): Promise<ReadonlySet<string>> {
  if (needs.length === 0) return new Set()
  const codeReads = needs.map(({ signer }) => ({ method: 'eth_getCode', params: [signer, 'latest'] }))
  const balanceRead = balancesCall(needs.map(({ signer, token }) => ({ account: signer, token })))
  const votes = await requestVotes(electorateOf(voters), needs.length, async ({ rpc }) => {
    const responses = await rpc.batch([...codeReads, balanceRead])
    const codes = responses.slice(0, needs.length).map((response) => readHex(resultOf(response), 'code'))
    const balances = readBalances(resultOf(responses[needs.length]), needs.length)
    return needs.map(({ raw }, index) => {
      const balance = balances[index]
      const isCovered = typeof balance === 'bigint' && balance >= raw
      return codes[index] === '0x' && isCovered ? 'shared' : 'single'
    })
  })
  return new Set(needs.filter((_, index) => votes[index] !== 'shared').map(({ signer }) => signer.toLowerCase()))
}

/** Returns the account's code on which a majority of the nodes agrees, because one node could otherwise reject every contract account. */
function agreedCode({ voters }: NodeRpc, account: Address): Promise<Hex> {
  const query = async ({ rpc }: Voter) => readHex(await rpc.result('eth_getCode', [account, 'latest']), 'code')
  return requestAgreement(electorateOf(voters), query, (code) => code.toLowerCase())
}

export function domainReads(token: Address) {
  const reads = [tokenReads.name, tokenReads.version, tokenReads.domainSeparator]
  return reads.map((data) => ({ method: 'eth_call', params: [{ to: token, data }, 'latest'] }))
}

export function readDomain(responses: readonly RpcResponse[]): TokenDomain | undefined {
  const [name, version, separator] = responses.map(returnedBy)
  if (name === undefined || version === undefined || separator === undefined) return undefined
  try {
    return { name: decodeString(name), version: decodeString(version), separator: decodeBytes32(separator) }
  } catch (error) {
    if (error instanceof AbiMalformed) return undefined
    throw error
  }
}

async function headOf(rpc: Rpc): Promise<Head> {
  return readHead(await rpc.result('eth_getBlockByNumber', ['latest', false]))
}

export function decoded<T>(decode: (data: Hex) => T, data: Hex): T {
  try {
    return decode(data)
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}

/** Finds the newest transaction in which a contract logged this event. Searches the whole chain, so the chain must be short. */
function createFindEvent(rpc: Rpc): (address: Address, topics: readonly Hex[]) => Promise<Hex | undefined> {
  const logs = createLogReader()
  return async (address, topics) => {
    const to = readQuantity(await rpc.result('eth_blockNumber', []), 'block number')
    for await (const piece of logs.newestFirst(rpc, { address, topics }, { from: 0n, to })) {
      const newest = piece.at(-1)
      if (newest !== undefined) return readHex(newest.transactionHash, 'log')
    }
    return undefined
  }
}
