"""From pairs to demonstrations: metrics, scripts, TG, TA, tags. Imports core, columns, arithmetic and pairs."""
