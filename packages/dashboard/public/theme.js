// Runs before the first paint, so that a dark page never flashes white.
try {
  const theme = localStorage.getItem('purser-theme')
  const isDark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.classList.toggle('dark', isDark)
} catch {
  // Storage is off: the page stays light.
}
