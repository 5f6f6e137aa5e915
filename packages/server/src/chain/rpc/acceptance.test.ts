import { expect, test } from 'vitest'
import { isProblem } from '../../platform/errors.ts'
import { fail } from '../errors.ts'
import { requestAcceptance } from './acceptance.ts'
import type { Voter } from './rpc.ts'

type Answer = 'accepts' | 'refuses' | 'fails' | 'hangs'

/** Returns the majority result for these node responses. */
async function judged(...answers: readonly Answer[]): Promise<'accepted' | 'refused' | 'unavailable'> {
  const voters = answers.map(() => ({}) as Voter)
  const query = async (voter: Voter): Promise<Answer> => {
    const answer = answers[voters.indexOf(voter)]
    if (answer === 'hangs') return new Promise(() => undefined)
    if (answer === undefined || answer === 'fails') throw fail('chain-unavailable')
    return answer
  }
  const electorate = { voters, needed: Math.floor(answers.length / 2) + 1 }
  try {
    const { isAccepted } = await requestAcceptance(electorate, query, (answer) => answer === 'accepts')
    return isAccepted ? 'accepted' : 'refused'
  } catch (error) {
    if (isProblem(error, 'chain-unavailable')) return 'unavailable'
    throw error
  }
}

test.each<[readonly Answer[], 'accepted' | 'refused' | 'unavailable']>([
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
  expect(await judged(...answers)).toBe(expected)
})
