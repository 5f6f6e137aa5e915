import type { Network } from '@purser/protocol'
import { isProblem } from '../../platform/errors.ts'
import { pause } from '../../platform/work/loop.ts'
import { presentBlock, readBlock } from '../blocks/parse.ts'
import { collectMost } from './acceptance.ts'
import type { DecisionBlock, Finality } from './port.ts'
import { invalidResponse, quantity } from './read.ts'
import type { NodeRpc, Rpc, Voter, Wait } from './rpc.ts'

/** The number of questions, and how to query one node for all of them. A response of `undefined` is no vote. */
interface Ballot<T, From = Rpc> {
  readonly count: number
  readonly ask: (node: From) => Promise<readonly (T | undefined)[]>
  /** The questions, all by default with `true`, that are about the newest blocks, where honest nodes may differ: nobody is suspended for them. */
  readonly isAtHead?: true | ((question: number) => boolean)
  /** Milliseconds to wait for the remaining nodes once as many have answered as must agree. Default: until they answer or time out. */
  readonly lateMs?: number
  /** Whether to report the nodes that answer `no` where others answer `yes` and there is no majority. */
  readonly reportsDenials?: boolean
}

type Vote = <T extends string | bigint>(ballot: Ballot<T>) => Promise<readonly (T | undefined)[]>

/** A block on which a majority agrees, and a vote among the nodes that have it, also late ones. */
export interface Decision {
  readonly block: DecisionBlock
  /** The height at the required depth, before `atMost` was applied. */
  readonly newest: bigint
  /** `newest`; of two nodes of which one is slightly behind, the height of the other one. With more nodes a single one must not raise it. */
  readonly highest: bigint
  /** The block parameter (EIP-1898). A node whose canonical block at that height differs returns an error. */
  readonly at: { readonly blockHash: string; readonly requireCanonical: true }
  /** The nodes that have shown the block in time. */
  readonly nodes: readonly Rpc[]
  readonly vote: Vote
}

/**
 * Confirmation by a strict majority of all configured nodes, whether they answer or not. A single node decides alone, two must agree, and of three
 * one may be wrong or down.
 */
export interface Quorum {
  /** Number of configured nodes. */
  readonly size: number
  /** Number of nodes that must agree. */
  readonly needed: number
  /**
   * The majority's result to each question; `undefined` when there is no majority. A node that contradicts the majority is suspended, except about the
   * newest blocks.
   */
  readonly vote: Vote
  /** The newest block at the required depth, not above `atMost`, on whose hash a majority agrees; `undefined` when there is none. */
  decide(finality: Finality, atMost?: bigint): Promise<Decision | undefined>
}

const lagBlocksMin = 3
const lagMs = 5_000

/** A node that is behind the others by more than this many blocks does not delay the decision block and is not preferred. */
export function lagBlocksOf({ blockTimeMs }: Network): bigint {
  return BigInt(Math.max(lagBlocksMin, Math.ceil(lagMs / blockTimeMs)))
}

export function createQuorum(network: Network, rpc: NodeRpc): Quorum {
  const needed = Math.floor(rpc.voters.length / 2) + 1
  const lagBlocks = lagBlocksOf(network)
  const { wait } = rpc
  const candidates = (): readonly Voter[] => {
    const healthy = rpc.voters.filter(({ node: { state } }) => state === 'up' || state === 'unchecked')
    return healthy.length >= needed ? healthy : rpc.voters.filter(({ node: { state } }) => state !== 'refused')
  }
  const voteAmong =
    (voters: readonly Voter[], mayVote: (voter: Voter) => Promise<void> = async () => {}): Vote =>
    ({ ask, ...ballot }) => {
      const askOne = (voter: Voter) => mayVote(voter).then(() => ask(voter.rpc))
      return poll(
        voters,
        { ...ballot, ask: askOne },
        {
          ...{ needed, wait },
          suspend: ({ node }) => rpc.suspend(node),
          reportDenial: ({ node }) => rpc.reportDenial?.(node),
        },
      )
    }
  return {
    size: rpc.voters.length,
    needed,
    vote: (ballot) => voteAmong(candidates())(ballot),
    async decide(finality, atMost) {
      const voters = candidates()
      const placeOf = once((voter) => heightOf(voter.rpc, network, { finality, atMost }))
      const prompt = new Map<Voter, bigint>()
      await collectMost(voters, {
        query: async (voter) => [voter, await placeOf(voter)] as const,
        suffices: ([voter, { height }]) => areNear([...prompt.set(voter, height).values()], needed, lagBlocks),
        wait,
      })
      const heights = [...prompt.values()]
      const newest = commonHeight(heights, needed, lagBlocks)
      if (newest === undefined) return undefined
      const height = atMost !== undefined && atMost < newest ? atMost : newest
      if (height < 0n) return undefined
      const blockOf = once(async (voter) => blockIn(voter.rpc, await placeOf(voter), height))
      const isPrompt = (voter: Voter) => prompt.has(voter)
      // The late nodes are awaited only where the others do not agree.
      const rule = { needed, wait }
      const first = await agreedAmong(voters.filter(isPrompt), blockOf, rule)
      const agreed = first.length < needed ? await agreedAmong(voters, blockOf, rule) : first
      const block = agreed[0]?.response
      if (block === undefined || agreed.length < needed) return undefined
      return {
        block,
        newest,
        highest:
          needed < rpc.voters.length ? newest : highestOf(heights.filter((shown) => shown <= newest + lagBlocks)),
        at: { blockHash: block.hash, requireCanonical: true },
        nodes: voters.flatMap((one) => (agreed.some(({ voter }) => voter === one) ? [one.rpc] : [])),
        vote: voteAmong(voters, async (voter) => {
          if (keyOf(await blockOf(voter)) !== keyOf(block)) throw invalidResponse('the node has another block')
        }),
      }
    },
  }
}

/** Queries each node at most once, when its response is first needed. */
function once<T>(query: (voter: Voter) => Promise<T>): (voter: Voter) => Promise<T> {
  const queried = new Map<Voter, Promise<T>>()
  return (voter) => {
    const response = queried.get(voter) ?? query(voter)
    queried.set(voter, response)
    return response
  }
}

interface NodeResponse<T> {
  readonly voter: Voter
  readonly response: T
}

/** Each node's response. Nodes that fail or return an invalid response are omitted. */
async function eachOf<T>(
  voters: readonly Voter[],
  ask: (voter: Voter) => Promise<T>,
): Promise<readonly NodeResponse<T>[]> {
  const responses = await Promise.all(
    voters.map((voter) =>
      ask(voter).then(
        (response) => ({ voter, response }),
        (error: unknown) => {
          if (isProblem(error, 'chain-unavailable')) return undefined
          throw error
        },
      ),
    ),
  )
  return responses.filter((response) => response !== undefined)
}

/** The largest group of nodes with the same block, each with the block. Waits for all only until `needed` of them agree. */
async function agreedAmong(
  voters: readonly Voter[],
  blockOf: (voter: Voter) => Promise<DecisionBlock>,
  { needed, wait }: Pick<NodeRpc, 'wait'> & { readonly needed: number },
): Promise<readonly NodeResponse<DecisionBlock>[]> {
  const blocks: NodeResponse<DecisionBlock>[] = []
  await collectMost(voters, {
    query: async (voter) => ({ voter, response: await blockOf(voter) }),
    suffices(block) {
      blocks.push(block)
      return largestGroup(blocks).length >= needed
    },
    wait,
  })
  return largestGroup(blocks)
}

interface Rule {
  readonly needed: number
  readonly wait: Wait | undefined
  readonly suspend: (voter: Voter) => void
  readonly reportDenial: (voter: Voter) => void
}

/** Resolves as soon as every question has a majority. Waits for a slow node only when the others do not suffice, and with `lateMs` only so long. */
function poll<T extends string | bigint>(
  voters: readonly Voter[],
  { count, ask, isAtHead, lateMs, reportsDenials = false }: Ballot<T, Voter>,
  { needed, suspend, reportDenial, wait = pause }: Rule,
): Promise<readonly (T | undefined)[]> {
  const waiting = new AbortController()
  let isWaiting = false
  const cast: NodeResponse<readonly (T | undefined)[]>[] = []
  const outcome = () =>
    Array.from({ length: count }, (_, index) =>
      majority(
        cast.map(({ response }) => response[index]),
        needed,
      ),
    )
  return new Promise<readonly (T | undefined)[]>((resolve, reject) => {
    const requests = voters.map((voter) =>
      eachOf([voter], ask).then((votes) => {
        cast.push(...votes)
        const decided = outcome()
        if (decided.every((response) => response !== undefined)) return resolve(decided)
        if (lateMs === undefined || isWaiting || cast.length < needed) return
        isWaiting = true
        void wait(lateMs, waiting.signal).then(() => resolve(outcome()), reject)
      }),
    )
    Promise.all(requests).then(() => {
      const decided = outcome()
      const isDeep = (index: number) => isAtHead === undefined || (isAtHead !== true && !isAtHead(index))
      const deep = decided.map((response, index) => (isDeep(index) ? response : undefined))
      const dissenting = cast.filter(({ response }) => contradicts(response, deep))
      for (const { voter } of dissenting) suspend(voter)
      if (reportsDenials) for (const { voter } of denyingIn(cast, decided)) reportDenial(voter)
      resolve(decided)
    }, reject)
  }).finally(() => waiting.abort())
}

function majority<T>(votes: readonly (T | undefined)[], needed: number): T | undefined {
  const counts = new Map<T, number>()
  for (const vote of votes) if (vote !== undefined) counts.set(vote, (counts.get(vote) ?? 0) + 1)
  return [...counts].find(([, count]) => count >= needed)?.[0]
}

/** The nodes that answer `no` to a question without a majority to which another one answers `yes`. */
function denyingIn<T>(
  cast: readonly NodeResponse<readonly (T | undefined)[]>[],
  decided: readonly (T | undefined)[],
): readonly NodeResponse<unknown>[] {
  const isSplit = decided.map(
    (outcome, index) => outcome === undefined && cast.some(({ response }) => response[index] === 'yes'),
  )
  return cast.filter(({ response }) => isSplit.some((is, index) => is && response[index] === 'no'))
}

function contradicts<T>(own: readonly (T | undefined)[], decided: readonly (T | undefined)[]): boolean {
  return decided.some(
    (response, index) => response !== undefined && own[index] !== undefined && own[index] !== response,
  )
}

/** The number of a node's newest block at the required depth, and the blocks that it showed for it, all from one request. */
interface NodeHeight {
  readonly height: bigint
  readonly blocks: readonly DecisionBlock[]
}

/**
 * With a tag, the confirmation depth applies too. The decision block is most often one of those that were shown, the one at `atMost` or, at depth 1, the
 * newest one, and needs no further request then.
 */
async function heightOf(
  rpc: Rpc,
  network: Network,
  { finality, atMost }: { readonly finality: Finality; readonly atMost: bigint | undefined },
): Promise<NodeHeight> {
  const tags = ['latest', ...('tag' in finality ? [finality.tag] : [])]
  const wanted = atMost === undefined || atMost < 0n ? [] : [quantity(atMost)]
  const responses = await rpc.batch(
    [...tags, ...wanted].map((block) => ({ method: 'eth_getBlockByNumber', params: [block, false] })),
  )
  const tips = responses.slice(0, tags.length).map((response) => presentBlock(response.ok ? response.result : null))
  const found = responses
    .slice(tags.length)
    .flatMap((response) => readBlock(response.ok ? response.result : null, atMost) ?? [])
  const [latest, tagged] = tips.map(({ number }) => number)
  return {
    height: heightIn({ latest, tagged }, network, finality),
    blocks: [...found, ...tips].map((block) => decisionBlockOf(block)),
  }
}

/** For a chain shorter than the depth this is block 0, which cannot be reorganized. */
export function heightIn(
  { latest = 0n, tagged }: { readonly latest: bigint | undefined; readonly tagged: bigint | undefined },
  network: Network,
  finality: Finality,
): bigint {
  const depth = 'depth' in finality ? finality.depth : network.confirmationDepth
  const deep = latest - BigInt(depth) + 1n
  if (deep < 0n) return 0n
  return tagged !== undefined && tagged < deep ? tagged : deep
}

/** Whether enough nodes are near the highest: a node that shows an old height does not decide with one other while the rest are late. */
function areNear(heights: readonly bigint[], needed: number, lagBlocks: bigint): boolean {
  const highest = highestOf(heights)
  return heights.filter((height) => height >= highest - lagBlocks).length >= needed
}

function highestOf(heights: readonly bigint[]): bigint {
  return heights.reduce((most, height) => (height > most ? height : most), 0n)
}

/**
 * The lowest height among the nodes within `lagBlocks` of the majority. The majority's height is counted from the highest down, so that neither a
 * node far behind nor one that invents blocks changes it.
 */
function commonHeight(heights: readonly bigint[], needed: number, lagBlocks: bigint): bigint | undefined {
  const sorted = heights.toSorted((left, right) => (left > right ? -1 : left < right ? 1 : 0))
  const reached = sorted[needed - 1]
  if (reached === undefined) return undefined
  return sorted.findLast((height) => height >= reached - lagBlocks)
}

/** The node's block at this height. Throws `chain-unavailable` where the node is not that far. */
async function blockIn(rpc: Rpc, { height: reached, blocks }: NodeHeight, height: bigint): Promise<DecisionBlock> {
  if (reached < height) throw invalidResponse('the node does not have the block')
  const known = blocks.find(({ number }) => number === height)
  if (known !== undefined) return known
  return decisionBlockOf(presentBlock(await rpc.result('eth_getBlockByNumber', [quantity(height), false]), height))
}

function decisionBlockOf({ number, hash, timestampSeconds }: DecisionBlock): DecisionBlock {
  return { number, hash, timestampSeconds }
}

function keyOf({ hash, timestampSeconds }: DecisionBlock): string {
  return `${hash} ${timestampSeconds}`
}

function largestGroup(blocks: readonly NodeResponse<DecisionBlock>[]): readonly NodeResponse<DecisionBlock>[] {
  const groups = Map.groupBy(blocks, ({ response }) => keyOf(response))
  return [...groups.values()].reduce((most, group) => (group.length > most.length ? group : most), [])
}
