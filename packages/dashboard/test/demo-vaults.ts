import type { Purser } from '@purser/sdk'

/** A picture of one pixel. */
const pixel = Uint8Array.from(
  atob('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='),
  (letter) => letter.charCodeAt(0),
)

/** Makes a vault that fills and one that is sealed. Returns their ids. */
export async function makeVaults(
  purser: Purser,
): Promise<{ readonly vaultId: string; readonly sealedVaultId: string }> {
  const open = await filledVault(purser, 'Market research: batteries in stationary storage, from a request of an agent')
  const sealed = await filledVault(purser, 'Forecast of 23 November')
  await purser.vaults.seal(sealed, { summary: 'Three sources, one forecast.' })
  return { vaultId: open, sealedVaultId: sealed }
}

async function filledVault(purser: Purser, description: string): Promise<string> {
  const { id } = await purser.vaults.create({ description, ttl: '24h' })
  await purser.vaults.emit(id, { event: 'research.started', payload: { sources: 3 } })
  await purser.vaults.documents.add(id, { name: 'forecast.json', data: { celsius: 21, note: '<b>not bold</b>' } })
  const page = new TextEncoder().encode('<script>document.title = "owned"</script><p>A page of a stranger.</p>')
  await purser.vaults.files.add(id, page, { name: 'page.html', mimeType: 'text/html' })
  await purser.vaults.files.add(id, pixel, { name: 'pixel.png', mimeType: 'image/png' })
  await purser.vaults.emit(id, { event: 'research.progress', payload: { done: 2, of: 3 } })
  return id
}
