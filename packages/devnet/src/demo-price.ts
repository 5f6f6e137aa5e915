/** The price of each paid call of the demo, in dollars. */
export const demoPrice = '0.01'

/** `demoPrice` in the smallest unit of the tokens it is paid in, which have six decimals. */
export const rawPrice = 10_000n
