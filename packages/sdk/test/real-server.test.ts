import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPurser } from '../src/index.ts'
import { aWorld, type Org, type World } from '../../server/test/world.ts'

let world: World
let org: Org
beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation('enterprise')
})
afterAll(() => world?.stop())

const address = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const clientFor = (apiKey: string) => createPurser({ apiKey, baseUrl: world.base, maxRetries: 0 })
const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => Promise.reject(new Error('it succeeded')),
    (error) => error,
  )
