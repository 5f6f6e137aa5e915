import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockPresent } from '../../src/features/vaults/index.ts'
import { isId } from '../../src/platform/ids.ts'
import { codeOf } from '../world.ts'
import { aVaultStage, type VaultStage } from './vaults-stage.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

test('another’s vault that is being written to is answered as one that never was, without waiting for its writers', async () => {
  const [owner, stranger] = [await stage.world.organisation(), await stage.world.organisation()]
  const vaultId = await stage.vault(owner)
  if (!isId('vlt', vaultId)) throw new Error('no vault')
  const writing = stage.ctx(owner)
  const answers = await writing.db.tx(async (tx) => {
    await lockPresent(tx, writing, vaultId)
    return Promise.all([
      stage.call(stranger, 'POST', `/vaults/${vaultId}/emit`, { event: 'knock' }),
      stage.world.call(owner.liveKey, 'POST', `/vaults/${vaultId}/emit`, { event: 'knock' }),
    ])
  })
  expect(answers.map(codeOf)).toEqual(['vault-not-found', 'vault-not-found'])
})
