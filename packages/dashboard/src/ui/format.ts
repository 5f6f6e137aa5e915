/** `1234567.05` → `1,234,567.05`. Text in, text out: nothing is rounded, and zeros that say nothing are left out. */
export function groupDecimal(decimal: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(decimal)
  if (match === null) return decimal
  const [, sign = '', whole = '', fraction = ''] = match
  const kept = fraction.replace(/0+$/, '')
  return `${sign}${whole.replace(/\B(?=(\d{3})+$)/g, ',')}${kept === '' ? '' : `.${kept.padEnd(2, '0')}`}`
}

/** Adds decimals without a float. */
export function addDecimals(amounts: readonly string[]): string {
  const places = Math.max(0, ...amounts.map((amount) => amount.split('.')[1]?.length ?? 0))
  const sum = amounts.reduce((total, amount) => {
    const [whole = '0', fraction = ''] = amount.split('.')
    return total + BigInt(whole + fraction.padEnd(places, '0'))
  }, 0n)
  const digits = sum.toString().padStart(places + 1, '0')
  return places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`
}

/** `pay_01h455vb4pex5vsknk084sn02q` → `pay_01h4…n02q`; `0x5FbDB2315678…` → `0x5FbD…0aa3`. */
export function middleTruncate(text: string, end = 4): string {
  const prefix = /^(?:[a-z]+_|0x)/.exec(text)?.[0] ?? ''
  const rest = text.slice(prefix.length)
  return rest.length <= 2 * end + 3 ? text : `${prefix}${rest.slice(0, end)}…${rest.slice(-end)}`
}

/** `3 payments`, `1 payment`, with thousands grouped. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`
}

/** The number of rows that a list shows; `The newest 50 payments` if there are more. */
export function shownCount(number: number, one: string, { hasMore }: { readonly hasMore: boolean }): string {
  return `${hasMore ? 'The newest ' : ''}${count(number, one)}`
}

/** `512 B`, `1.5 KB`, `24.3 MB`, in steps of 1,000; one decimal above the first. */
export function byteSize(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  const step = Math.min(units.length - 1, bytes < 1 ? 0 : Math.floor(Math.log10(bytes) / 3))
  const number = (bytes / 1_000 ** step).toFixed(step === 0 ? 0 : 1).replace(/\.0$/, '')
  return `${number} ${units[step]}`
}

/** `850 ms`, `2.4 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  const seconds = ms / 1_000
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1).replace(/\.0$/, '') : Math.round(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return joined([minutes, 'min'], [Math.round(seconds % 60), 's'])
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return joined([hours, 'h'], [minutes % 60, 'min'])
  return joined([Math.floor(hours / 24), 'd'], [hours % 24, 'h'])
}

function joined(...parts: readonly (readonly [number, string])[]): string {
  return parts
    .filter(([number], index) => index === 0 || number > 0)
    .map(([number, unit]) => `${number} ${unit}`)
    .join(' ')
}

/** The first letter in upper case: `settlement_failed` → `Settlement failed`. */
export function sentenceCase(word: string): string {
  const spaced = word.replaceAll(/[_-]/g, ' ')
  return spaced.charAt(0).toUpperCase() + spaced.slice(1)
}

/** A network as people write it: `base-sepolia` → `Base Sepolia`. */
export function networkName(name: string): string {
  return name
    .replace(/^eth-/, 'ethereum-')
    .split('-')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ')
}

/** Whether the text is a decimal amount above zero. */
export function isAmount(text: string): boolean {
  return /^\d+(?:\.\d+)?$/.test(text) && /[1-9]/.test(text)
}

/** Returns a sentence with the numbers of movements of money that wait, are open or failed; it leaves out those that are zero. */
export function movementWords(
  shown: string,
  { waiting, open, failed }: { readonly waiting: number; readonly open: number; readonly failed: number },
): string {
  const parts = [
    waiting > 0 && `${waiting.toLocaleString('en-US')} ${waiting === 1 ? 'waits' : 'wait'} for an approval`,
    open > 0 && `${open.toLocaleString('en-US')} on the way`,
    failed > 0 && `${failed.toLocaleString('en-US')} failed`,
  ].filter((part) => part !== false)
  return `${shown}: ${parts.length === 0 ? 'all done' : parts.join(', ')}.`
}
