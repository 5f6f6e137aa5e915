const width = 88
const height = 28

/** The trend of a figure. Hidden from screen readers, because the chart below has the same data. */
export function Sparkline({ values }: { values: readonly number[] }) {
  if (values.length < 2) return null
  const most = Math.max(1, ...values)
  const points = values.map(
    (value, index) => `${(index / (values.length - 1)) * width},${2 + (1 - value / most) * (height - 4)}`,
  )
  return (
    <svg width={width} height={height} aria-hidden="true" className="shrink-0">
      <path d={`M${points.join('L')}`} fill="none" stroke="var(--chart-1)" strokeWidth={1.5} strokeLinejoin="round" />
    </svg>
  )
}
