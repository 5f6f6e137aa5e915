import { isProblem } from '../../platform/errors.ts'
import { pause } from '../../platform/work/loop.ts'
import { fail } from '../errors.ts'
import type { Voter, Wait } from './rpc.ts'

/** The judgment of a majority about a payment: the responses of the nodes that accept it, or the response of one that does not. */
export type Acceptance<T> =
  | { readonly isAccepted: true; readonly responses: readonly T[] }
  | { readonly isAccepted: false; readonly response: T }

export interface Electorate {
  readonly voters: readonly Voter[]
  readonly needed: number
}

/** The healthy nodes if they suffice, or all but those of another chain, and how many make a strict majority of those configured. */
export function electorateOf(all: readonly Voter[]): Electorate {
  const needed = Math.floor(all.length / 2) + 1
  const healthy = all.filter(({ node: { state } }) => state === 'up' || state === 'unchecked')
  const voters = healthy.length >= needed ? healthy : all.filter(({ node: { state } }) => state !== 'refused')
  return { voters, needed }
}

/**
 * Queries all nodes at once, as of their own latest blocks, and resolves when `needed` of them accept or refuse. Nodes may differ by a block, so a dissenting
 * one is not suspended, and a payer whose money has just arrived is accepted once a majority has it. Throws `chain-unavailable` if too few answer, and
 * where a refusal is `final`, unless a majority refuses.
 */
export async function requestAcceptance<T>(
  { voters, needed }: Electorate,
  query: (voter: Voter) => Promise<T>,
  isAccepting: (response: T) => boolean,
  refusal: 'passing' | 'final' = 'passing',
): Promise<Acceptance<T>> {
  const [accepting, refusing]: [T[], T[]] = [[], []]
  await collect(voters, query, (response) => {
    if (isAccepting(response)) accepting.push(response)
    else refusing.push(response)
    // A majority that refuses waits for no slow node either.
    return accepting.length >= needed || refusing.length >= needed
  })
  if (accepting.length >= needed) return { isAccepted: true, responses: accepting }
  const [response] = refusing
  const judging = refusal === 'final' ? refusing.length : accepting.length + refusing.length
  if (response === undefined || judging < needed)
    throw fail('chain-unavailable', {}, new Error('too few nodes judge a payment'))
  return { isAccepted: false, response }
}

/**
 * Queries all nodes at once about each of `count` items, and resolves when `needed` of them agree on every item, or when all have answered: an item on which they
 * do not agree is undefined. Nobody is suspended. Throws `chain-unavailable` if too few answer.
 */
export async function requestVotes<T extends string>(
  { voters, needed }: Electorate,
  count: number,
  query: (voter: Voter) => Promise<readonly T[]>,
): Promise<readonly (T | undefined)[]> {
  const cast: (readonly T[])[] = []
  const decided = (): readonly (T | undefined)[] =>
    Array.from({ length: count }, (_, index) => {
      const votes = cast.map((one) => one[index])
      return votes.find((vote) => votes.filter((other) => other === vote).length >= needed)
    })
  await collect(voters, query, (votes) => {
    cast.push(votes)
    return decided().every((vote) => vote !== undefined)
  })
  if (cast.length < needed) throw fail('chain-unavailable', {}, new Error('too few nodes answer'))
  return decided()
}

/** The response on which a majority of the nodes agrees, compared by its text. Throws `chain-unavailable` while there is none. */
export async function requestAgreement<T>(
  electorate: Electorate,
  query: (voter: Voter) => Promise<T>,
  textOf: (response: T) => string,
): Promise<T> {
  const responses = new Map<string, { readonly response: T }>()
  const [text] = await requestVotes(electorate, 1, async (voter) => {
    const response = await query(voter)
    responses.set(textOf(response), { response })
    return [textOf(response)]
  })
  const agreed = text === undefined ? undefined : responses.get(text)
  if (agreed === undefined) throw fail('chain-unavailable', {}, new Error('the nodes do not agree'))
  return agreed.response
}

/** Milliseconds to wait for the remaining nodes once the others suffice. */
const furtherMs = 250

interface Collecting<T> {
  readonly query: (voter: Voter) => Promise<T>
  readonly suffices: (response: T) => boolean
  readonly wait: Wait | undefined
}

/** As `collect`, but where the responses suffice, the remaining nodes have a short time to respond. Also resolves then. */
export async function collectMost<T>(
  voters: readonly Voter[],
  { query, suffices, wait = pause }: Collecting<T>,
): Promise<void> {
  const late = Promise.withResolvers<void>()
  const waiting = new AbortController()
  let isWaiting = false
  const all = collect(voters, query, (response) => {
    if (!suffices(response) || isWaiting) return false
    isWaiting = true
    void wait(furtherMs, waiting.signal).then(late.resolve)
    return false
  })
  await Promise.race([all, late.promise]).finally(() => waiting.abort())
}

/** Resolves when a response decides, or when all nodes have answered. A node that fails has no vote. */
export function collect<T>(
  voters: readonly Voter[],
  query: (voter: Voter) => Promise<T>,
  isDecided: (response: T) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const requests = voters.map(async (voter) => {
      const response = await query(voter).catch((error: unknown) => {
        if (!isProblem(error, 'chain-unavailable')) throw error
        return undefined
      })
      if (response !== undefined && isDecided(response)) resolve()
    })
    Promise.all(requests).then(() => resolve(), reject)
  })
}
