import { expect, test } from 'vitest'
import { isProblem } from '../../platform/errors.ts'
import { fail } from '../errors.ts'
import { requestAcceptance } from './acceptance.ts'
import type { Voter } from './rpc.ts'

type Answer = 'accepts' | 'refuses' | 'fails' | 'hangs'

type Outcome = 'accepted' | 'refused' | 'unavailable'

/** Returns the majority result for these node responses. */
async function judged(answers: readonly Answer[], refusal?: 'final'): Promise<Outcome> {
  const voters = answers.map(() => ({}) as Voter)
  const query = async (voter: Voter): Promise<Answer> => {
    const response = answers[voters.indexOf(voter)]
    if (response === 'hangs') return new Promise(() => undefined)
    if (response === undefined || response === 'fails') throw fail('chain-unavailable')
    return response
  }
  const electorate = { voters, needed: Math.floor(answers.length / 2) + 1 }
  try {
    const { isAccepted } = await requestAcceptance(electorate, query, (response) => response === 'accepts', refusal)
    return isAccepted ? 'accepted' : 'refused'
  } catch (error) {
    if (isProblem(error, 'chain-unavailable')) return 'unavailable'
    throw error
  }
}

test.each<[readonly Answer[], Outcome]>([
  [['accepts', 'accepts'], 'accepted'],
  [['accepts', 'refuses'], 'refused'],
  [['accepts', 'fails'], 'unavailable'],
  [['refuses', 'fails'], 'unavailable'],
  [['accepts', 'accepts', 'refuses'], 'accepted'],
  [['accepts', 'refuses', 'refuses'], 'refused'],
  [['accepts', 'accepts', 'hangs'], 'accepted'],
  [['refuses', 'hangs', 'refuses'], 'refused'],
  [['accepts', 'fails', 'accepts'], 'accepted'],
  [['accepts', 'fails', 'refuses'], 'refused'],
  [['accepts', 'fails', 'fails'], 'unavailable'],
])('nodes that answer %j: %s', async (answers, expected) => {
  expect(await judged(answers)).toBe(expected)
})

test.each<[readonly Answer[], Outcome]>([
  [['accepts', 'accepts'], 'accepted'],
  [['accepts', 'refuses'], 'unavailable'],
  [['refuses', 'refuses'], 'refused'],
  [['accepts', 'refuses', 'refuses'], 'refused'],
  [['accepts', 'fails', 'refuses'], 'unavailable'],
  [['refuses', 'hangs', 'refuses'], 'refused'],
  [['refuses'], 'refused'],
])('where a refusal is final, nodes that answer %j: %s', async (answers, expected) => {
  expect(await judged(answers, 'final')).toBe(expected)
})
