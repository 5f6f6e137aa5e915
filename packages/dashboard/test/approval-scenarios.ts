import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import type { DemoData } from './demo-data.ts'
import type { Stage } from './people-scenarios.ts'
import { show, signedInBy } from './stage.ts'

/** Money that one person requests and another one decides, each in a browser of their own. */
export function approvalScenarios({ dev, purserOf, browser, open }: Stage, demoData: () => Promise<DemoData>): void {
  let joined: ReturnType<typeof signedInBy> | undefined

  /** The cookies of a second person who may approve, whom the owner invited in the dashboard. */
  function admin(): ReturnType<typeof signedInBy> {
    joined ??= joinAsAdmin('second@example.com')
    return joined
  }

  async function joinAsAdmin(email: string) {
    await open({}, async (page) => {
      await page.goto(`${dev().dashboardUrl}/test/team`)
      await page.getByRole('button', { name: 'Invite', exact: true }).click()
      await page.getByRole('dialog').getByLabel('Email').fill(email)
      await page.getByRole('dialog').getByLabel('Admin').check()
      await page.getByRole('dialog').getByRole('button', { name: 'Invite as admin' }).click()
      await page.getByRole('row').filter({ hasText: email }).getByText('Invited').waitFor()
    })
    const storageState = await signedInBy({ dev, browser }, email)
    await open({ storageState }, async (page) => {
      await page.goto(`${dev().dashboardUrl}/test`)
      await page.getByRole('button', { name: 'Join as admin' }).click()
      await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
    })
    return storageState
  }

  /** Requests a transfer above what the policy lets through, as a person does, and returns the ids of it and of its approval. */
  async function request(
    page: Page,
    amount: string,
  ): Promise<{ readonly transferId: string; readonly approvalId: string }> {
    const { dashboardUrl } = dev()
    const purser = purserOf()
    const { walletId = '' } = await demoData()
    await page.goto(`${dashboardUrl}/test/wallets/${walletId}`)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    const sheet = page.getByRole('dialog')
    await sheet.getByLabel('Amount').fill(amount)
    await sheet.getByLabel('To address').fill(recipient)
    await sheet.getByRole('button', { name: 'Get a quote' }).click()
    await sheet.getByRole('button', { name: `Send ${amount} USDC` }).click()
    await page.getByText('Waiting for approval').first().waitFor()
    const [newest] = await purser.transfers.list({ limit: 1 }).toArray({ limit: 1 })
    const { id = '', approval } = newest ?? {}
    return { transferId: id, approvalId: approval?.id ?? '' }
  }

  const recipient = '0x9b1deb4d3b7d4bad9bdd2b0d7b3dcb6dabcdef02'

  test('who requested money cannot approve it, a second person can, and the first page shows it without a reload', async () => {
    await open({ storageState: await admin() }, async (requester, { faults }) => {
      const { transferId, approvalId } = await request(requester, '61')
      await requester.goto(`${dev().dashboardUrl}/test/approvals/${approvalId}`)
      await requester.getByText('You or your key made this request.').waitFor()
      await requester.getByRole('button', { name: 'Approve' }).click()
      const dialog = requester.getByRole('dialog')
      await dialog.getByRole('button', { name: 'Approve 61 USDC' }).click()
      await dialog.getByRole('alert').getByText('No money moved.').waitFor()
      expect(faults).toHaveLength(2)
      expect(faults.join(' ')).toContain(`/approvals/${approvalId}/approve`)
      await dialog.getByRole('button', { name: 'Not yet' }).click()
      await requester.getByText('Waiting', { exact: true }).waitFor()

      await open({}, async (approver, seen) => {
        await approver.goto(`${dev().dashboardUrl}/test/approvals/${approvalId}`)
        await approver.getByText('second@example.com').waitFor()
        await approver.getByRole('button', { name: 'Approve' }).click()
        await approver.getByRole('button', { name: 'Approve 61 USDC' }).click()
        await approver.getByText('Approved', { exact: true }).waitFor()
        expect(seen.faults).toEqual([])
      })
      await requester.getByText('Approved', { exact: true }).waitFor()
      await requester.getByText('by dev@example.com').waitFor()
      await requester.getByRole('main').getByRole('link', { name: /^wtx_/ }).click()
      await requester.waitForURL(new RegExp(`/transfers/${transferId}$`))
      await requester.getByText('Arrived', { exact: true }).first().waitFor()
      expect(faults).toHaveLength(2)
    })
  })

  test('a second person declines a request with a reason, which the requester reads, and no money moves', async () => {
    await open({ storageState: await admin() }, async (requester, { faults }) => {
      const { transferId, approvalId } = await request(requester, '62')
      await requester.goto(`${dev().dashboardUrl}/test/approvals/${approvalId}`)
      await requester.getByText('Waiting', { exact: true }).waitFor()
      await open({}, async (approver, seen) => {
        await approver.goto(`${dev().dashboardUrl}/test/approvals/${approvalId}`)
        await approver.getByRole('button', { name: 'Decline' }).click()
        await approver.getByRole('dialog').getByLabel('Reason').fill('Too <b>much</b> for one supplier')
        await approver.getByRole('dialog').getByRole('button', { name: 'Decline 62 USDC' }).click()
        await approver.getByText('Declined', { exact: true }).waitFor()
        expect(seen.faults).toEqual([])
      })
      await requester.getByText('Declined', { exact: true }).waitFor()
      await requester.getByText('Too <b>much</b> for one supplier').waitFor()
      expect(await requester.getByRole('button', { name: /^(?:Approve|Decline|Cancel request)/ }).count()).toBe(0)
      await show(requester, `${dev().dashboardUrl}/test/transfers/${transferId}`)
      await requester.getByText('No transaction was sent').waitFor()
      expect(faults).toEqual([])
    })
  })
}
