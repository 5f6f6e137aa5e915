import { createPurser } from '@purser/sdk'
import { type PaidVault, payMiddleware, vaultMiddleware } from '@purser/sdk/express'
import { type Request, Router } from 'express'
import { demoPrice } from './demo-price.ts'
import type { DevRecord } from './dev-file.ts'

/** The types of the events that fill the vault, in order. */
export const researchEvents = ['research.started', 'document.added', 'file.added']

/**
 * Research that is sold once and done in three calls: the first opens a vault, the second fills it, the third seals it.
 * Each call has its price; the payer of one continues with the session.
 */
export function researchRoutes({ apiKey, baseUrl }: DevRecord): Router {
  const { vaults } = createPurser({ apiKey, baseUrl })
  const offer = { price: demoPrice, description: 'Research', acceptSessions: true, sessionTtl: '1h' }
  return Router()
    .use(payMiddleware(offer), vaultMiddleware())
    .post('/open', async (req, res) => {
      const vaultId = await vaultIn(req).id()
      const { token } = await vaults.tokens.create(vaultId)
      res.json({ vaultId, token })
    })
    .post('/fill', async (req, res) => {
      const vault = vaultIn(req)
      await vault.emit('research.started', { question: 'Will it rain?' })
      await vault.addDocument('finding', { question: 'Will it rain?', answer: 'No', confidence: 0.97 })
      await vault.addFile('measurements.csv', measurements(), 'text/csv')
      res.json({ documents: 1, files: 1 })
    })
    .post('/seal', async (req, res) => {
      const vault = vaultIn(req)
      await vault.seal('One finding, and the measurements behind it.')
      res.json({ proof: await vaults.proof(await vault.id()) })
    })
}

function vaultIn({ vault }: Request): PaidVault {
  if (vault === undefined) throw new Error('the route is not sold')
  return vault
}

const rows = 5_000

/** Streams to the vault row by row and is never whole in memory. */
async function* measurements(): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  yield encoder.encode('hour,millimetres\n')
  for (let row = 0; row < rows; row += 1) yield encoder.encode(`${row},${(row * 7) % 13}\n`)
}
