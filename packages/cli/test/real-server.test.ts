import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../../server/test/world.ts'
import { aDirectory, offline, purser } from './stage.ts'

let world: World
let org: Org
beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation('enterprise')
})
afterAll(() => world?.stop())

test('what the service sealed is proven without it, from what it published, with the data as it answers it', async () => {
  const data = { b: 1, a: ['für alle', 1e21] }
  const id = String((await world.call(org.testKey, 'POST', '/vaults', {})).body.id)
  const added = await world.call(org.testKey, 'POST', `/vaults/${id}/documents`, { name: 'Findings', data })
  const item = String(added.body.id)
  await world.call(org.testKey, 'POST', `/vaults/${id}/seal`, { summary: 'Done' })
  const { put } = aDirectory()
  const jwks = put('jwks.json', await (await fetch(`${world.base}/.well-known/jwks.json`)).text())
  const whole = put('proof.json', (await world.call(org.testKey, 'GET', `/vaults/${id}/proof`)).body)
  const one = put('item.json', (await world.call(org.testKey, 'GET', `/vaults/${id}/proof?item=${item}`)).body)
  const read = await world.call(org.testKey, 'GET', `/vaults/${id}/documents/${item}`)
  const content = ['--item', item, '--file', put('data.json', read.body.data)]
  for (const proof of [whole, one]) {
    const { code, stdout, stderr } = await purser(['verify', proof, '--keys', jwks, ...content], offline)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(`vault        ${id}\n`)
    expect(stdout).toContain('signed with  did:web:purser.test#')
  }
})
